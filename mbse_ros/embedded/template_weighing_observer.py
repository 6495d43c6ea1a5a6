# SPDX-License-Identifier: Apache-2.0
"""C of an observer that weighs: as ``filters/hydraulic_observer.py`` with ``OutsideForce``, ``SilentPressures``,
``RareCommands`` and ``UnweighedMotion``."""

from __future__ import annotations

COVARIANCE = r'''/* With what uncertain numbers of the machine do to the state. */
static real covariance(const estimator *e, int i, int j) {
  const real *const a = e->x + SLOPES + i * UNSURE, *const b = e->x + SLOPES + j * UNSURE;
  real sum = e->x[packed(i, j)];
  int c;
  for (c = 0; c < UNSURE; ++c) sum += a[c] * b[c];
  return sum * (SCALE[i] * SCALE[j]);
}

/* Of the motion as sensors measure it: without the errors of their zeros and gains. */
static real variance_of_motion(const estimator *e, int i) {
  const real *const a = e->x + SLOPES + i * UNSURE;
  real sum = e->x[packed(i, i)];
  int c;
  for (c = 0; c < UNSURE; ++c)
    if (OF_MOTION[c]) sum += a[c] * a[c];
  return sum * (SCALE[i] * SCALE[i]);
}

'''

KEEP_LOAD = r'''
/* The load of the state before, of whose information a share is left, if that says more than nothing. */
static void keep_load(estimator *e, const real *before, real kept) {
  int i, j, c;
  real found[UNKNOWNS][UNKNOWNS];
  for (i = 0; i < UNKNOWNS; ++i)
    for (j = 0; j < UNKNOWNS; ++j) {
      const int at = NX - UNKNOWNS + i, to = NX - UNKNOWNS + j;
      real sum = before[packed(at, to)];
      for (c = K; c < UNSURE; ++c) sum += before[SLOPES + at * UNSURE + c] * before[SLOPES + to * UNSURE + c];
      found[i][j] = sum / kept;
    }
  if (!(found[UNKNOWNS - 1][UNKNOWNS - 1] < e->x[packed(NX - 1, NX - 1)])) return;
  for (i = 0; i < UNKNOWNS; ++i) {
    const int at = NX - UNKNOWNS + i;
    e->x[at] = before[at];
    for (j = 0; j <= i; ++j) e->x[packed(at, NX - UNKNOWNS + j)] = found[i][j];
    for (c = 0; c < K; ++c) e->x[SLOPES + at * UNSURE + c] = before[SLOPES + at * UNSURE + c];
  }
}

'''

START_LOAD = r'''e->paused_for = e->pause;
  if (e->has_state && e->pause > 0.0) keep_load(e, e->best, (real)exp(-e->pause / PAUSES));
  e->has_state = 1;
  e->pause = e->shocks = e->command_now = 0.0;
  e->outside = 0;
  e->rare_until = -(double)INFINITY;
  e->commanded = e->since_known = 0;
  e->unseen = R(0.0);
  memset(e->streak, 0, sizeof e->streak);
  memset(e->silent_for, 0, sizeof e->silent_for);
  memset(e->shut, 0, sizeof e->shut);
  for (j = 0; j < COMMANDS; ++j) {
    e->command_changed[j] = -(double)INFINITY;
    e->command_step[j] = R(0.0);
  }'''

CLIPPED = r'''/* Independent coordinates within the range. */
static const real *clipped(estimator *e) {
  int i;
  for (i = 0; i < G; ++i) e->mean[i] = F(fmin)(F(fmax)(e->x[i], RANGE[i][0]), RANGE[i][1]);
  return e->mean;
}

'''

WEIGHING = r'''
/* Steps of a tick from the one at first to before the one at last: samples count in the last one of the tick. The end
   is in next; returns the channel that is farthest beyond the gate, -1: none. */
static int look(estimator *e, const real *from, int first, int last, const real *command) {
  int k, j, worst = -1;
  real most = R(0.0);
  memcpy(e->best, from, sizeof e->best);
  for (k = first; k < last; ++k) {
    const int sampled = k == SUBSTEPS - 1;
    for (j = 0; j < CHANNELS; ++j) e->u[j] = sampled ? e->sample[j] : (real)NAN;
    for (j = 0; j < COMMANDS; ++j) e->u[CHANNELS + j] = sampled ? command[j] : e->last_command[j];
    observe(e, e->best, e->next);
    memcpy(e->best, e->next, sizeof e->best);
    memcpy(e->report[k], e->y + NX + 2 * CHANNELS, sizeof e->report[k]);
  }
  for (j = 0; last == SUBSTEPS && j < CHANNELS; ++j) {
    const real square = e->y[NX + j] * e->y[NX + j], variance = e->y[NX + CHANNELS + j];
    if (square > THRESHOLD * variance && (worst < 0 || square / variance > most)) {
      worst = j;
      most = square / variance;
    }
  }
  return worst;
}

/* Use the force balance, or nearly not; equations without pressures or efforts carry no information. */
static void balance(estimator *e, int used) {
  int i;
  for (i = FORCE; i < FORCE + EQUATIONS; ++i)
    e->p[i] = OBSERVER_NUMBERS[i] * (used && !e->shut[i - FORCE] ? R(1.0) : SHOCK);
}

/* Samples beyond the gate from e->start left out, the farthest first; 1 where there were any. */
static int reject(estimator *e, int first, const real *command) {
  int far, any = 0;
  while ((far = look(e, e->start, first, SUBSTEPS, command)) >= 0 && !e->rejected[far]) {    /* each channel once */
    e->innovation[far] = e->y[NX + far];
    e->variance[far] = e->y[NX + CHANNELS + far];
    e->rejected[far] = 1;
    e->sample[far] = (real)NAN;
    any = 1;
  }
  return any;
}

/* Steps up to samples that surprise, as after a shock, without the force balance unless a pressure contradicts it alone
   and for the first time; as before where without the samples rejected the machine was quiet. */
static void rerun(estimator *e, int first, const real *given, const real *command) {
  int j, any, possible = e->shocks > RECENT;
  memcpy(e->start, e->x, sizeof e->start);
  for (j = 0; j < G; ++j) e->start[ACTIVITY + j] = LIVELIEST;
  any = reject(e, first, command);
  for (j = 0; j < CHANNELS; ++j) possible |= e->rejected[j] && SHOWS[j];
  for (j = 0; possible && j < CHANNELS; ++j) {
    e->sample[j] = given[j];
    e->rejected[j] = 0;
    any = 0;
  }
  e->start[MASS] = F(fmax)(e->start[MASS], MASS_AFTER_SHOCK);
  balance(e, 0);
  any |= reject(e, first, command);
  balance(e, !e->outside);
  if (any && look(e, e->x, first, SUBSTEPS, command) >= 0) {
    balance(e, 0);
    (void)look(e, e->start, first, SUBSTEPS, command);
    balance(e, !e->outside);
  }
}

/* Steps without surprise. */
static void calm(estimator *e, int count, int sampled) {
  int j;
  if (e->shocks == 0.0) return;
  e->outside = e->outside > count ? e->outside - count : 0;
  e->shocks *= exp(-count * STEP_S / LATE);
  for (j = 0; sampled && j < CHANNELS; ++j) e->streak[j] = 0;
}

/* A tick with a shock; 1 where the motion is to be found again from nothing. */
static int shock(estimator *e, const real *given) {
  int j, lost = 0;
  e->shocks += 1.0;
  for (j = 0; j < CHANNELS; ++j) {
    if (!isnan(given[j])) e->streak[j] = e->rejected[j] ? e->streak[j] + 1 : 0;
    lost |= SHOWS[j] && e->streak[j] >= STREAK;
  }
  if (lost || e->shocks >= SHOCKS) e->outside = OUTSIDE_STEPS;
  for (j = 0; lost && j < CHANNELS; ++j) e->streak[j] = 0;
  return lost;
}

/* Whether a pressure or an effort is silent in a step; age: s without a sample before the tick. */
static int silent(double age, int there, int step) {
  return !(there && step == SUBSTEPS - 1) && age + (step + 1) * STEP_S > SILENT_AFTER;
}

/* Nothing is known of a pressure or an effort that is silent, or of an unknown flow to it. */
static void release(estimator *e, int entry, real value, real stddev) {
  const real ratio = stddev / SCALE[entry];
  int k;
  for (k = 0; k < NX; ++k) e->x[packed(entry, k)] = R(0.0);
  for (k = 0; k < UNSURE; ++k) e->x[SLOPES + entry * UNSURE + k] = R(0.0);
  e->x[entry] = value;
  e->x[packed(entry, entry)] = ratio * ratio;
}

/* Take equations with silent pressures or efforts out of the balance. */
static void close_silent(estimator *e, const int *is_silent) {
  int i, p;
  memset(e->shut, 0, sizeof e->shut);
  for (p = 0; p < PUSHES; ++p) {
    if (!is_silent[p]) continue;
    for (i = 0; i < EQUATIONS; ++i) e->shut[i] |= NEEDS[p * EQUATIONS + i];
    release(e, PUSH_ENTRY[p], PUSH_UNKNOWN[p][0], PUSH_UNKNOWN[p][1]);
    for (i = 0; i < FLOWS; ++i)
      if (FLOW_OWNER[i] == p) release(e, FLOW_ENTRY[i], R(0.0), FLOW_AGAIN);
  }
}

/* Whether a command steps on, long after a step the same way: it is rarer than the motion. */
static int moved_on(estimator *e, const real *command) {
  const double stamp = e->command_now + SUBSTEPS * STEP_NS;
  int j, found = 0;
  for (j = 0; j < COMMANDS && (e->commanded || SUBSTEPS > 1); ++j) {
    const real last = e->last_command[j], step = command[j] - last;
    if (step == R(0.0)) continue;
    {
      const double gap = stamp - e->command_changed[j];
      found |= F(fabs)(step) > RAMP * COMMAND_LIMIT[j] && step * e->command_step[j] > R(0.0) && 1e-9 * gap < ONE_WAY
               && F(fabs)(last) > VALVE_CLOSED * COMMAND_LIMIT[j] && gap > RARE_GAP;
      e->command_changed[j] = stamp;
      e->command_step[j] = step;
    }
  }
  return found;
}

/* Pressures follow their samples where commands are rare. */
static void follow(estimator *e, int rare) {
  if (rare && !e->rare) e->x[MASS] = LARGEST_ACTIVITY;
  e->rare = (unsigned char)rare;
  e->p[PRESSURE_WALK] = rare ? F(fmax)(PRESSURE_PSD, RARE_DENSITY) : PRESSURE_PSD;
}

/* The load may be another one where cylinders move that no equation weighs. */
static void unweighed(estimator *e) {
  real *const kept = &e->report[SUBSTEPS - 1][2];
  const real known = e->x[packed(NX - 1, NX - 1)], before = e->unseen;
  real way = R(0.0);
  int i, k, whole = WHOLE, moves = 0;
  for (i = 0; i < EQUATIONS; ++i) {
    if (e->shut[i]) whole = 0;
    else if (e->x[MOVED_AT + i] > R(0.5)) moves = 1;
  }
  if (whole && !e->since_known) return;
  if (moves) {
    e->unseen = R(0.0);
    e->since_known = (unsigned char)!whole;
    for (k = 0; k < ACTUATED_COUNT; ++k) e->since[k] = e->x[ACTUATED[k]];
    if (before == R(0.0)) return;
    e->x[packed(NX - 1, NX - 1)] += before;
    e->x[MASS] = F(fmax)(e->x[MASS], AGAIN_ACTIVITY);
    return;
  }
  for (k = 0; k < ACTUATED_COUNT; ++k) {
    const real *const range = RANGE[ACTUATED[k]];
    int weighs = 0;
    if (!e->since_known) e->since[k] = e->x[ACTUATED[k]];
    for (i = 0; i < EQUATIONS; ++i) weighs |= !e->shut[i] && WEIGHED[i] == k;
    if (!weighs) way = F(fmax)(way, F(fabs)(e->x[ACTUATED[k]] - e->since[k]) / (range[1] - range[0]));
  }
  e->since_known = 1;
  if (way > UNSEEN) {
    const real spread = ANY * F(fmin)(way / UNSEEN_ANOTHER, R(1.0));
    e->unseen = F(fmax)(before, spread * spread);
  }
  *kept += F(log)((known + before) / (known + e->unseen));
}

/* The tick of the observer: predict, correct, weigh, samples beyond the gate left out. */
static void correct(estimator *e, const real *command) {
  const double begin = e->command_now, until = e->rare_until;
  real given[CHANNELS + 1];
  double age[PUSHES + 1], oldest = 0.0;
  int is_silent[PUSHES + 1], j, p, k, done = 0, any = 0, whole = 1, watched = 0, rare, now_rare;
  for (j = 0; j < CHANNELS; ++j) {
    given[j] = e->sample[j];
    e->rejected[j] = 0;
    if (isnan(given[j])) whole = 0;
    else any = 1;
  }
  rare = now_rare = moved_on(e, command);
  if (now_rare) e->rare_until = begin + SUBSTEPS * STEP_NS + 1e9 * RARE_REMEMBERED;
  rare |= begin < until;
  e->command_now += SUBSTEPS * STEP_NS;
  e->commanded = 1;
  if (!rare) follow(e, 0);
  for (p = 0; p < PUSHES; ++p) {
    age[p] = e->silent_for[p];
    if (age[p] > oldest) oldest = age[p];
  }
  if (!(whole && oldest + SUBSTEPS * STEP_S <= SILENT_AFTER)) watched = oldest > SILENT_AFTER;
  for (p = 0; p < PUSHES; ++p) {
    const int there = !isnan(given[PUSH_CHANNEL[p]]);
    for (k = 0; k < SUBSTEPS; ++k) watched |= silent(age[p], there, k);
    e->silent_for[p] = there ? 0.0 : age[p] + SUBSTEPS * STEP_S;
  }
  while (done < SUBSTEPS) {
    int stop = e->outside && done + e->outside < SUBSTEPS ? done + e->outside : SUBSTEPS, far;
    for (k = done + 1; k < stop; ++k) {
      int differs = rare && (begin + k * STEP_NS <= until) !=
                                (begin + (k + 1) * STEP_NS <= until || (now_rare && k == SUBSTEPS - 1));
      for (p = 0; watched && p < PUSHES; ++p) {
        const int there = !isnan(given[PUSH_CHANNEL[p]]);
        differs |= silent(age[p], there, k) != silent(age[p], there, k - 1);
      }
      if (differs) stop = k;
    }
    if (watched) {
      for (p = 0; p < PUSHES; ++p) is_silent[p] = silent(age[p], !isnan(given[PUSH_CHANNEL[p]]), done);
      close_silent(e, is_silent);
    }
    if (rare) follow(e, begin + (done + 1) * STEP_NS <= until || (now_rare && done == SUBSTEPS - 1));
    balance(e, !e->outside);
    if (e->outside) e->x[MASS] = LARGEST_ACTIVITY;
    far = look(e, e->x, done, stop, command);
    if (far < 0) {
      calm(e, stop - done, any && stop == SUBSTEPS);
      memcpy(e->x, e->next, sizeof e->x);
    } else {
      rerun(e, done, given, command);
      calm(e, SUBSTEPS - done, 0);
      memcpy(e->x, e->next, sizeof e->x);
      if (shock(e, given)) open_motion(e);
    }
    done = stop;
  }
  for (j = 0; j < CHANNELS; ++j) {
    if (e->rejected[j]) continue;
    e->innovation[j] = isnan(given[j]) ? (real)NAN : e->y[NX + j];
    e->variance[j] = e->y[NX + CHANNELS + j];
  }
  unweighed(e);
  memcpy(e->next, e->x, sizeof e->next);
}

'''
