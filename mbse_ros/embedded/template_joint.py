# SPDX-License-Identifier: Apache-2.0
"""C of the mass of an observer that weighs: as ``payload/joint.py`` with ``MassFilter``, and the tick of its estimator,
as ``streams/stages.py: PayloadStage``."""

from __future__ import annotations

FILTER = r'''
/* Mean of the window, older and newer vectors with less weight, over the largest odd number of them. */
static void smooth(filter *f) {
  const unsigned count = f->in_window < WINDOW ? f->in_window - 1u + f->in_window % 2u : (unsigned)WINDOW;
  const unsigned half = count / 2u;
  unsigned k;
  int i;
  for (i = 0; i < M; ++i) f->value[i] = R(0.0);
  for (k = 0; k < count; ++k) {
    const unsigned at = (f->window_end + (unsigned)WINDOW - count + k) % (unsigned)WINDOW;
    const real weight = (real)(k <= half ? k + 1u : count - k) / ((real)(half + 1u) * (real)(half + 1u));
    for (i = 0; i < M; ++i) f->value[i] += weight * f->window[at][i];
  }
}

static void push(filter *f) {
  int i;
  for (i = 0; i < M; ++i)
    f->window[f->window_end][i] = f->sums[0] > R(0.0) ? f->sums[1 + i] / f->sums[0] : (real)NAN;
  f->window_end = (f->window_end + 1u) % (unsigned)WINDOW;
  if (f->in_window < WINDOW) ++f->in_window;
}

/* Of the information so far only a share still counts; where much is lost, window and scatter start again. */
static void lose_samples(filter *f, real share) {
  int i;
  if (!(share < R(1.0))) return;
  f->kept += log(fmax((double)share, 1e-300));
  for (i = 0; i < WIDTH; ++i) f->sums[i] *= share;
  f->share *= share;
  if (!(f->share < RESTART)) return;
  f->in_window = f->window_end = 0;
  f->batches = f->batched = 0;
  f->batch[0] = f->batch[1] = f->moment[0] = f->moment[1] = f->moment[2] = R(0.0);
  f->share = R(1.0);
}

/* After samples without a new start between them: a batch that is full is closed. */
static void part(filter *f, int count, const real *batch) {
  if (!count) return;
  f->samples = f->samples < LONG ? f->samples + (unsigned)count : f->samples;
  smooth(f);
  f->known = 1;
  f->batch[0] += batch[0];
  f->batch[1] += batch[1];
  f->batched += (unsigned)count;
  if (f->batched < BATCH) return;
  {
    const real mean = f->batch[1] / f->batch[0], square = f->batch[0] * f->batch[0];
    f->moment[0] = f->moment[0] * BATCH_DECAY + square;
    f->moment[1] = f->moment[1] * BATCH_DECAY + square * mean;
    f->moment[2] = f->moment[2] * BATCH_DECAY + square * (mean * mean);
  }
  f->batches = more(f->batches);
  f->batched = 0;
  f->batch[0] = f->batch[1] = R(0.0);
}

/* The steps of a tick, of which some are taken. */
static void take_steps(filter *f, real rows[][WIDTH], const unsigned char *taken, const real *lost) {
  real batch[2] = {R(0.0), R(0.0)};
  int i, k, count = 0;
  for (k = 0; k < SUBSTEPS; ++k) {
    real share = F(exp)(lost[k]);
    if (f->share * share < RESTART) {
      part(f, count, batch);
      count = 0;
      batch[0] = batch[1] = R(0.0);
      lose_samples(f, share);
    } else {
      f->kept += (double)lost[k];
      f->share *= share;
      for (i = 0; i < WIDTH; ++i) f->sums[i] *= share;
    }
    if (!taken[k]) continue;
    for (i = 0; i < WIDTH; ++i) f->sums[i] = DECAY * f->sums[i] + rows[k][i];
    push(f);
    batch[0] += rows[k][0];
    batch[1] += rows[k][1];
    ++count;
  }
  part(f, count, batch);
}

/* Variance of the mass by the scatter of its samples where it counts, at least that of its information. */
static real variance_of(const filter *f) {
  const real total = f->sums[0], mean = f->value[0];
  real spread, freedom;
  if (f->batches < 2) return R(1.0) / total;
  spread = F(fmax)(f->moment[2] - R(2.0) * mean * f->moment[1] + mean * mean * f->moment[0], R(0.0));
  freedom = F(fmax)(F(fmin)(total * total / f->moment[0], (real)f->batches) - R(1.0), R(1.0));
  if (!(freedom >= CONVINCING)) return R(1.0) / total;
  return F(fmax)(R(1.0) / total, spread / (total * total) * (freedom + R(1.0)) / freedom);
}

'''

ESTIMATOR = r'''/* Begin to solve the joints again. */
static void restart_mass(estimator *e, double pause) {
  e->placed = 0;
  e->memories = 0;
  if (e->filter.known)
    e->restarted = F(fmax)(pause > 0.0 ? e->restarted * (real)exp(-pause / PAUSES) : R(0.0), HARDLY);
}

/* Discard what the last half second, or up to a second, has added. */
static void doubt_mass(estimator *e) {
  doubt_errors(e);
  if (e->memories) {
    const double kept = e->filter.kept;
    e->filter = e->memory[0];
    e->memories = 0;
    lose_samples(&e->filter, (real)exp(kept - e->filter.kept));
  }
}

/* What errors in common do to the difference of two masses or, of one, to itself: what is known of it, and the square
   of its deviation. */
static double through(const estimator *e, const double *slopes, double *square) {
  const int stated = e->incredible && !e->broken[e->incredible];
  double known = 0.0;
  int i;
  *square = 0.0;
  for (i = 0; i < K; ++i) {
    known += stated ? 0.0 : slopes[i] * e->common[1 + i];
    *square += slopes[i] * (stated ? slopes[i] : dot(e->P + (1 + i) * M + 1, slopes, K));
  }
  *square = fmax(*square, 0.0);
  return known;
}

/* The mass; raw: of the last step alone. */
static void conclude(estimator *e, real raw, int gate, int taken) {
  const filter *const f = &e->filter;
  mass_result *const m = &e->mass;
  double square;
  int i;
  memset(m, 0, sizeof *m);
  m->mass = m->stddev = m->half = m->noise = m->weighed = (real)NAN;
  m->raw = raw;
  m->gate = gate;
  if (!f->known || f->sums[0] < LEAST_INFORMATION) return;
  for (i = 0; i < K; ++i) m->slopes[i] = (double)f->value[1 + i];
  m->weighed = f->value[0];
  m->mass = m->weighed - (real)through(e, m->slopes, &square);
  {
    const real variance = variance_of(f);
    m->noise = F(sqrt)(variance);
    m->stddev = F(sqrt)(variance + (real)square);
  }
  m->half = NORMAL * m->stddev;
  m->lean = (real)lean_of(e);
  m->taken = taken;
  m->whole = 1;
  m->contradiction = e->incredible != 0;
  for (i = 1; i < M; ++i) m->zeros |= e->wrong_zero[i];
  m->surprise = e->opened && e->corrected < LEARNING;
  m->settling = e->since_change < e->lasted;
}

/* The mass so far; of what was reported only a change of the load is used. */
static void hold(estimator *e, int reported) {
  real lost = R(0.0);
  int k;
  for (k = 0; k < SUBSTEPS; ++k) lost += e->report[k][2];
  if (reported && lost - lost == R(0.0)) {
    lose_samples(&e->filter, F(exp)(lost));
    e->common_kept += (double)lost;
  }
  conclude(e, (real)NAN, 0, 0);
}

/* Take what the steps of a tick report; 0 where the joints cannot be solved. */
static int collect(estimator *e, const real *before) {
  real rows[SUBSTEPS][WIDTH], lost[SUBSTEPS];
  double since[WIDTH];
  unsigned char taken[SUBSTEPS];
  int i, k, some = 0, gate = 0, renewed = 0;
  e->remembered += SUBSTEPS * STEP_S;
  if (e->remembered >= REMEMBERED || !e->memories) {
    if (e->memories == 2) e->memory[0] = e->memory[1];
    e->memories = e->memories == 2 ? 2 : e->memories + 1;
    e->memory[e->memories - 1] = e->filter;
    e->remembered = 0.0;
  }
  for (k = 0; k < SUBSTEPS; ++k) {
    for (i = 0; i < NX; ++i)
      e->mean[i] = k < SUBSTEPS - 1 ? before[i] + (real)(k + 1) / SUBSTEPS * (e->x[i] - before[i]) : e->x[i];
    if (!e->placed) {
      for (i = 0; i < NS; ++i) e->xs[i] = R(0.0);
      @place@
      e->placed = 1;
    }
    e->arg[0] = e->xs; e->arg[1] = e->mean; e->arg[2] = GATES;
    e->res[0] = e->xs_next; e->res[1] = e->row;
    (void)@name@_casadi_gates(e->arg, e->res, e->iw, e->w, 0);
    memcpy(e->xs, e->xs_next, sizeof e->xs);
    gate = e->row[0] > R(0.0) ? (int)e->row[0] : 0;
    for (i = 0; i < WIDTH; ++i) rows[k][i] = e->report[k][i < 2 ? i : i + 1];
    lost[k] = e->report[k][2];
    taken[k] = !gate && rows[k][0] > R(0.0);
    some += taken[k];
  }
  if (!(e->row[1] - e->row[1] == R(0.0))) return 0;
  if (e->restarted < R(1.0) && some) {
    lose_samples(&e->filter, e->restarted);
    renewed = 1;
  }
  {
    const double restarted = log((double)e->restarted);
    int again_since = 0;
    for (k = 0; k < SUBSTEPS; ++k) {
      for (i = 0; again_since && taken[k] && i < WIDTH; ++i) since[i] += (double)rows[k][i];
      again_since |= take_step(e, rows[k], taken[k], renewed ? (k ? 0.0 : restarted) : (double)lost[k], since);
    }
    enter_due(e);
    if (renewed) e->restarted = R(1.0);
    take_steps(&e->filter, rows, taken, lost);
    if (again_since) {      /* the load, or a sensor, is another */
      lose_samples(&e->filter, (real)NOTHING);
      for (i = 0; i < WIDTH; ++i) e->filter.sums[i] = (real)since[i];
      if (e->filter.known) {
        push(&e->filter);
        smooth(&e->filter);
      }
    }
  }
  conclude(e, rows[SUBSTEPS - 1][0] > R(0.0) ? rows[SUBSTEPS - 1][1] / rows[SUBSTEPS - 1][0] : (real)NAN, gate, some);
  return 1;
}

'''

STEP = r'''/* What is wrong with the state, in bits of the faults. */
static unsigned state_faults(const estimator *e, const @name@_output *out) {
  unsigned all = 0, jumped, rejected;
  int j;
  for (j = 0; j < CHANNELS; ++j) all |= out->channel[j];
  jumped = all & @NAME@_JUMPED ? @NAME@_FAULT_JUMPED : 0u;
  rejected = all & @NAME@_REJECTED ? @NAME@_FAULT_REJECTED : 0u;
  if (out->observer == @NAME@_LOST) {
    if (out->reasons & @NAME@_NOT_FINITE) return @NAME@_FAULT_NOT_FINITE;
    if (out->reasons & @NAME@_NOTHING_MEASURED) return @NAME@_FAULT_UNMEASURED;
    if (out->reasons & @NAME@_FAR_OUTSIDE) return @NAME@_FAULT_OUT_OF_RANGE | jumped;
    if (out->reasons & @NAME@_NOT_KNOWN) return @NAME@_FAULT_VAGUE | jumped;
    return @NAME@_FAULT_REJECTED;
  }
  if (out->observer == @NAME@_STARTING) return @NAME@_FAULT_SETTLING;
  if (out->observer == @NAME@_OK) return rejected | (e->outside ? @NAME@_FAULT_OUTSIDE_FORCE : 0u);
  if (all & @NAME@_MISSING) rejected |= @NAME@_FAULT_MISSING;
  if (all & @NAME@_CONSTANT) rejected |= @NAME@_FAULT_STUCK;
  if (all & @NAME@_BELOW_VACUUM) rejected |= @NAME@_FAULT_VACUUM;
  if (all & @NAME@_AT_END_OF_RANGE) rejected |= @NAME@_FAULT_SATURATED;
  if (all & @NAME@_FAR_AWAY) rejected |= @NAME@_FAULT_FAR;
  return rejected | jumped;
}

static void forget(estimator *e) {
  memset(&e->filter, 0, sizeof e->filter);
  e->filter.share = e->restarted = R(1.0);
  e->placed = 0;
  e->memories = 0;
  e->remembered = 0.0;
  errors_begin(e);
  monitor_begin(e);
  memset(&e->mass, 0, sizeof e->mass);
  e->mass.mass = e->mass.stddev = e->mass.half = e->mass.noise = e->mass.weighed = e->mass.raw = (real)NAN;
  e->held = LONG;
}

void @name@_init(estimator *e) {
  int j;
  memset(e, 0, sizeof *e);
  memcpy(e->p, OBSERVER_NUMBERS, sizeof e->p);
  for (j = 0; j < CHANNELS; ++j) e->last_sample[j] = e->jump_from[j] = (real)NAN;
  forget(e);
}

void @name@_new_load(estimator *e) { forget(e); }

void @name@_pause(estimator *e, double seconds) {
  e->pause = seconds;
  e->has_state = e->has_state && seconds < FORGOTTEN;
  forget_samples(e);
}

void @name@_gap(estimator *e) { @name@_pause(e, (double)INFINITY); }

void @name@_step(estimator *e, const @name@_input *in, @name@_output *out) {
  if (!begin_tick(e, out)) {
    const int restart = track(e, in, out);
    real before[NX];
    memcpy(before, e->mean, sizeof before);
    show_state(e, out);
    out->state_faults = state_faults(e, out);
    if (restart) pause_mass(e);
    e->now += SUBSTEPS * STEP_NS;
    if (may_weigh(e, in, restart, out)) {
      if (!collect(e, before)) {
        restart_mass(e, 0.0);
        hold(e, 0);
        out->status = @NAME@_OUTSIDE_STROKE;
        out->faults = @NAME@_FAULT_SINGULAR;
        judge_mass(e, out, 1);
      } else {
        judge_mass(e, out, 0);
      }
    } else {
      if (e->doubted) doubt_mass(e);
      hold(e, 1);
      judge_mass(e, out, 1);
    }
    out->taken = e->mass.taken;
    out->raw = e->mass.raw;
  }
  keep_samples(e, in);
  out->held_mass = e->mass.mass;
  out->held_lower = e->mass.mass - e->mass.half + F(fmin)(e->mass.lean, R(0.0));
  out->held_upper = e->mass.mass + e->mass.half + F(fmax)(e->mass.lean, R(0.0));
  out->held_stddev = e->mass.stddev;
  show_mass(e, out);
}
'''
