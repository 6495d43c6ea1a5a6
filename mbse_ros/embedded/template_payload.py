# SPDX-License-Identifier: Apache-2.0
"""C of the payload's tick: as ``payload/paper.py`` and ``streams/stages.py: PayloadStage`` of weighing apart."""

from __future__ import annotations

PLACE = r'''/* Dependent coordinates at the independent ones z, by Newton's method along a way from the file's start;
   0 where it finds none. */
static int place(estimator *e, const real *z, real *dependent) {
  real at[G], next[ND], far = R(0.0);
  int i, k, step, steps;
  for (i = 0; i < G; ++i) far = F(fmax)(far, F(fabs)(z[i] - START_Z[i]));
  if (!(far <= R(1000.0))) return 0;
  steps = 1 + (int)(far / R(0.25));
  memcpy(dependent, START_DEPENDENT, sizeof next);
  for (step = 1; step <= steps; ++step) {
    real change = R(1.0);
    for (i = 0; i < G; ++i) at[i] = START_Z[i] + (z[i] - START_Z[i]) * ((real)step / (real)steps);
    for (k = 0; k < NEWTON && change > CLOSED; ++k) {
      e->arg[0] = dependent; e->arg[1] = at; e->arg[2] = NUMBERS;
      e->res[0] = next;
      (void)@name@_casadi_close(e->arg, e->res, e->iw, e->w, 0);
      change = R(0.0);
      for (i = 0; i < ND; ++i) {
        const real scale = F(fmax)(R(1.0), F(fabs)(next[i])), moved = F(fabs)(next[i] - dependent[i]) / scale;
        change = moved <= change ? change : moved;     /* NAN stays */
        dependent[i] = next[i];
      }
    }
    if (!(change <= R(1e3) * CLOSED)) return 0;
  }
  return 1;
}

'''

TICK = r'''
/* What does not hang on how the mass is weighed. Nothing yet, and whether these are the first samples of all: values
   between two samples, and speeds, need two. */
static int begin_tick(const estimator *e, @name@_output *out) {
  int i;
  memset(out, 0, sizeof *out);
  out->raw = out->mass = out->lower = out->upper = (real)NAN;
  out->status = @NAME@_NO_DATA;
  if (e->sampled) return 0;
  out->observer = @NAME@_LOST;
  out->reasons = @NAME@_FIRST_SAMPLES;
  for (i = 0; i < CHANNELS; ++i) out->channel[i] = @NAME@_MISSING;
  for (i = 0; i < NX; ++i) out->state[i] = out->state_stddev[i] = (real)NAN;
  out->mean_nis = (real)NAN;
  return 1;
}

static void show_state(const estimator *e, @name@_output *out) {
  int i;
  out->mean_nis = e->nis;
  for (i = 0; i < NX; ++i) {
    out->state[i] = e->x[i];
    out->state_stddev[i] = F(sqrt)(covariance(e, i, i));
  }
}

static void keep_samples(estimator *e, const @name@_input *in) {
  memcpy(e->last_sample, in->sample, sizeof e->last_sample);
  memcpy(e->last_command, in->command, sizeof e->last_command);
  e->sampled = 1;
}

/* The mass that is held counts where the status says so. */
static void show_mass(estimator *e, @name@_output *out) {
  if (out->status == @NAME@_UPDATING) {
    e->held = 0;
    out->mass = out->held_mass;
    out->lower = out->held_lower;
    out->upper = out->held_upper;
  } else {
    e->held = more(e->held);
  }
  out->held_for = e->held < LONG ? TICK * (real)e->held : (real)INFINITY;
}

/* Samples were missing: what lies between the next and the last is not known. */
static void forget_samples(estimator *e) {
  int j;
  e->started = e->sampled = 0;
  for (j = 0; j < CHANNELS; ++j) {
    e->jumped[j] = R(0.0);
    e->jump_known[j] = 0;
    e->stepped[j] = R(0.0);
  }
  e->recent_rows = 0;
}
'''
PAYLOAD = r'''
/* Begin to solve the joints again, with samples that wait dropped. */
static void unplace(estimator *e) {
  e->placed = 0;
  e->ticks_waiting = e->clean = 0;
}

static void forget(estimator *e) {
  int i;
  for (i = 0; i < WIDTH; ++i) e->sums[i] = e->value[i] = R(0.0);
  e->batch[0] = e->batch[1] = e->moment[0] = e->moment[1] = e->moment[2] = R(0.0);
  e->in_window = e->window_end = e->batched = e->batches = e->samples = e->known = 0;
  e->held = LONG;
  unplace(e);
}

/* Mean of the window, older and newer vectors with less weight, over the largest odd number of them. */
static void smooth(estimator *e) {
  const unsigned count = e->in_window < WINDOW ? e->in_window - 1u + e->in_window % 2u : (unsigned)WINDOW;
  const unsigned half = count / 2u;
  unsigned k;
  int i;
  for (i = 0; i < WIDTH - 1; ++i) e->value[i] = R(0.0);
  for (k = 0; k < count; ++k) {
    const unsigned at = (e->window_end + (unsigned)WINDOW - count + k) % (unsigned)WINDOW;
    const real weight = (real)(k <= half ? k + 1u : count - k) / ((real)(half + 1u) * (real)(half + 1u));
    for (i = 0; i < WIDTH - 1; ++i) e->value[i] += weight * e->window[at][i];
  }
}

/* Take a sample into the low-pass and the window; the scatter's sums go on. */
static void take(estimator *e, const real *row) {
  int i;
  for (i = 0; i < WIDTH; ++i) e->sums[i] = DECAY * e->sums[i] + row[i];
  for (i = 1; i < WIDTH; ++i) e->window[e->window_end][i - 1] = e->sums[i] / e->sums[0];
  e->window_end = (e->window_end + 1u) % (unsigned)WINDOW;
  if (e->in_window < WINDOW) ++e->in_window;
  e->batch[0] += row[0];
  e->batch[1] += row[1];
}

/* After the samples of a tick: a batch that is full is closed. */
static void batch(estimator *e, int taken) {
  e->batched += (unsigned)taken;
  if (e->samples < LONG) e->samples += (unsigned)taken;
  if (e->batched >= BATCH) {
    const real mean = e->batch[1] / e->batch[0], square = e->batch[0] * e->batch[0];
    e->moment[0] = e->moment[0] * BATCH_DECAY + square;
    e->moment[1] = e->moment[1] * BATCH_DECAY + square * mean;
    e->moment[2] = e->moment[2] * BATCH_DECAY + square * (mean * mean);
    e->batches = more(e->batches);
    e->batched = 0;
    e->batch[0] = e->batch[1] = R(0.0);
  }
  smooth(e);
  e->known = 1;
}

/* A clean sample waits for the guard time; too soon after another it is dropped. Samples taken: 1 or 0. */
static int guard(estimator *e, const real *row) {
  const int early = e->clean < GUARD;
  int taken = 0;
  e->clean = more(e->clean);
  if (early) return 0;
  {
    real *const slot = e->waiting[e->ticks_waiting % GUARD];
    if (e->ticks_waiting >= GUARD) {
      take(e, slot);
      taken = 1;
    }
    memcpy(slot, row, WIDTH * sizeof(real));
    e->ticks_waiting = e->ticks_waiting + 1u < 2u * GUARD ? e->ticks_waiting + 1u : e->ticks_waiting + 1u - GUARD;
  }
  return taken;
}

/* Samples of the mass in the states of a tick; the gate that closed the last one, 0: none, -1: out of reach. */
static int weigh(estimator *e, const real *before, int *taken, real *raw) {
  int i, k, gate = 0;
  if (!e->placed) {
    for (i = 0; i < NX; ++i) e->mean[i] = SUBSTEPS > 1 ? before[i] + (e->x[i] - before[i]) / SUBSTEPS : e->x[i];
    for (i = 0; i < NS; ++i) e->xs[i] = R(0.0);
    @place@
    e->placed = 1;
  }
  for (i = 0; i < NX; ++i)
    for (k = 0; k < NX; ++k) e->P[i * NX + k] = covariance(e, i, k);
  e->xs[NS - 1] = R(0.0);
  for (k = 0; k < SUBSTEPS; ++k) {
    for (i = 0; i < NX; ++i)
      e->mean[i] = k < SUBSTEPS - 1 ? before[i] + (real)(k + 1) / SUBSTEPS * (e->x[i] - before[i]) : e->x[i];
    e->arg[0] = e->xs; e->arg[1] = e->mean; e->arg[2] = e->P; e->arg[3] = NUMBERS; e->arg[4] = GATES;
    e->res[0] = e->xs_next; e->res[1] = e->row;
    (void)@name@_casadi_sample(e->arg, e->res, e->iw, e->w, 0);
    memcpy(e->xs, e->xs_next, sizeof e->xs);
    gate = e->row[NROW - 1] > R(0.0) ? (int)e->row[NROW - 1] : 0;
    e->rows[k][0] = gate || !(e->row[0] >= R(0.0)) ? -R(1.0) : e->row[0];    /* below 0: a gate is closed */
    for (i = 1; i < WIDTH; ++i) e->rows[k][i] = e->row[i];
  }
  if (!(e->row[0] - e->row[0] == R(0.0))) {
    unplace(e);
    return -1;
  }
  *raw = e->row[0] > R(0.0) ? e->row[1] / e->row[0] : (real)NAN;
  for (k = 0; k < SUBSTEPS; ++k) {
    if (e->rows[k][0] < R(0.0)) e->ticks_waiting = e->clean = 0;
    else *taken += guard(e, e->rows[k]);
  }
  if (*taken) batch(e, *taken);
  return gate;
}

/* Quantile of Student's t for a two-sided interval of 95 %. */
static real quantile(real freedom) {
  real above = R(0.0), here = R(0.0);
  int k;
  if (!(freedom < R(1e6))) return NORMAL;
  {
    const real x = R(2.0) / freedom - R(1.0);
    for (k = (int)(sizeof STUDENT / sizeof STUDENT[0]) - 1; k > 0; --k) {
      const real next = R(2.0) * x * here - above + STUDENT[k];
      above = here;
      here = next;
    }
    return F(exp)(x * here - above + STUDENT[0]);
  }
}

/* The mass known last and its interval. */
static void result(const estimator *e, @name@_output *out) {
  real variance = R(0.0), systematic = R(0.0), half, freedom = (real)INFINITY;
  const real total = e->sums[0];
  int i;
  out->held_mass = out->held_lower = out->held_upper = out->held_stddev = (real)NAN;
  if (!e->known) return;
  for (i = 1; i < WIDTH - 1; ++i) systematic += e->value[i] * e->value[i] * NUMBER_VARIANCE[i];
  if (e->batches < 2) {
    variance = (real)e->samples / total;
  } else {
    const real mean = e->value[0];
    const real spread = F(fmax)(e->moment[2] - R(2.0) * mean * e->moment[1] + mean * mean * e->moment[0], R(0.0));
    freedom = F(fmax)(F(fmin)(total * total / e->moment[0], (real)e->batches) - R(1.0), R(1.0));
    variance = spread / (total * total) * (freedom + R(1.0)) / freedom;
  }
  half = quantile(freedom);
  half = F(sqrt)(half * half * variance + NORMAL * NORMAL * systematic);
  out->held_mass = e->value[0];
  out->held_lower = e->value[0] - half;
  out->held_upper = e->value[0] + half;
  out->held_stddev = F(sqrt)(variance + systematic);
}

static int implausible(const @name@_output *out) {
  const real room = BEYOND * (out->held_upper - out->held_mass);
  return out->held_mass < LIGHTEST - room || out->held_mass > HEAVIEST + room;
}

void @name@_init(estimator *e) {
  int j;
  memset(e, 0, sizeof *e);
  memcpy(e->p, OBSERVER_NUMBERS, sizeof e->p);
  for (j = 0; j < CHANNELS; ++j) {
    e->last_sample[j] = e->jump_from[j] = (real)NAN;
  }
  forget(e);
}

void @name@_new_load(estimator *e) { forget(e); }

void @name@_gap(estimator *e) { forget_samples(e); }

void @name@_pause(estimator *e, double seconds) {
  (void)seconds;
  @name@_gap(e);
}

void @name@_step(estimator *e, const @name@_input *in, @name@_output *out) {
  static const int STATUS[] = {@NAME@_UPDATING, @NAME@_OUTSIDE_STROKE, @NAME@_NOT_OBSERVABLE, @NAME@_TOO_SLOW,
                               @NAME@_ACCELERATING};
  int gate = 0;
  if (!begin_tick(e, out)) {
    if (track(e, in, out)) unplace(e);
    show_state(e, out);
    if (out->observer == @NAME@_OK) {
      real before[NX];
      memcpy(before, e->mean, sizeof before);
      gate = weigh(e, before, &out->taken, &out->raw);
      out->status = gate < 0 ? @NAME@_OUTSIDE_STROKE : STATUS[gate];
    } else {
      e->ticks_waiting = e->clean = 0;
    }
  }
  keep_samples(e, in);
  result(e, out);
  if (out->observer == @NAME@_OK && gate >= 0) {
    if (e->known && implausible(out)) out->status = @NAME@_IMPLAUSIBLE;
    else if (!(out->mean_nis <= @NAME@_LARGEST_NIS)) out->status = @NAME@_CONTRADICTED;
    else if (out->status == @NAME@_UPDATING && out->held_upper - out->held_lower > WIDEST)
      out->status = @NAME@_NOT_OBSERVABLE;
    else if (out->status == @NAME@_UPDATING && (!out->taken || isnan(out->held_mass))) out->status = @NAME@_WAITING;
  }
  show_mass(e, out);
}
'''
