# SPDX-License-Identifier: Apache-2.0
"""C of the observer's tick: as ``streams/stages.py: ObserverStage`` and ``filters/hydraulic_observer.py``."""

from __future__ import annotations

OBSERVER = r'''/* SPDX-License-Identifier: Apache-2.0 */
/* See @name@.h. Written by mbse export-c --estimator: write it again rather than edit it. */
#include "@name@.h"

#include <math.h>
#include <string.h>

typedef @name@_real real;
typedef @name@_estimator estimator;

@number_macros@

enum { NX = @nx@, NA = @nx_all@, NU = @nu@, NP = @np@, CHANNELS = @channels@, COMMANDS = @commands@, G = @g@,
       SUBSTEPS = @substeps@, ND = @nd@, NS = @ns@, WIDTH = @width@, WINDOW = @window@, BATCH = @batch@,
       ACTIVITY = @activity@, NEWTON = 30 };
enum { DOUBT_TICKS = @doubt_ticks@, LOST_TICKS = @lost_ticks@, CONSTANT_TICKS = @constant_ticks@, LONG = 1000000000 };
@sizes@

@prototypes@
@tables@
const char *const @name@_channel_names[] = {@channel_names@};
const char *const @name@_state_names[] = {@state_names@};

/* Middle of n values, which come in order. */
static real median(real *values, int n) {
  int i, k;
  for (i = 1; i < n; ++i)
    for (k = i; k > 0 && values[k] < values[k - 1]; --k) {
      const real kept = values[k];
      values[k] = values[k - 1];
      values[k - 1] = kept;
    }
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / R(2.0);
}

static unsigned more(unsigned count) { return count < (unsigned)LONG ? count + 1u : count; }

/* One step of the observer from x to next. */
static void observe(estimator *e, const real *x, real *next) {
  e->arg[0] = x; e->arg[1] = e->u; e->arg[2] = e->p;
  e->res[0] = next; e->res[1] = e->y;
  (void)@name@_casadi_observer(e->arg, e->res, e->iw, e->w, 0);
}

/* Place of a covariance in the packed state. */
static int packed(int i, int j) {
  const int row = i > j ? i : j, column = i > j ? j : i;
  return NX + column * NX - column * (column - 1) / 2 + row - column;
}

@covariance@/* Speeds, accelerations and unknown flows as uncertain as at a start in motion. */
static void open_motion(estimator *e) {
  int i, k;
  for (i = 0; i < NX; ++i) {
    const real ratio = OPENED * START_STDDEV[i] / SCALE[i];
    if (!OPENS[i]) continue;
    for (k = 0; k < NX; ++k) e->x[packed(i, k)] = R(0.0);
    e->x[packed(i, i)] = ratio * ratio;
  }
}

@correct@@place_function@@keep_load@/* State from the first samples: at rest, or, starting again, perhaps in motion. */
static void begin(estimator *e, const real *first, const real *command) {
  int i, j;
  memcpy(e->best, e->x, sizeof e->best);
  memcpy(e->x, START, sizeof e->x);
  for (i = 0; i < NX; ++i) e->next[i] = START_STDDEV[i];
  for (j = 0; j < COMMANDS; ++j) {
    if (SPOOL[j] >= 0) e->x[SPOOL[j]] = command[j];
    e->x[COMMAND + j] = command[j];
  }
  for (j = 0; j < CHANNELS; ++j) {
    if (ENTRY[j] < 0 || !(first[j] - first[j] == R(0.0))) continue;
    e->x[ENTRY[j]] = (first[j] - OFFSET[j]) / GAIN[j] + ZERO[j];
    e->next[ENTRY[j]] = STDDEV[j] / GAIN[j];
  }
  for (i = 0; i < NX; ++i) {
    const real ratio = e->next[i] / SCALE[i];
    e->x[packed(i, i)] = ratio * ratio;
  }
  @start_dependent@
  if (e->begun) open_motion(e);
  @start_load@
  e->begun = 1;
  e->settled = 0;
  e->age = e->looked_at = 0.0;
  e->looked = (real)INFINITY;
  for (j = 0; j < CHANNELS; ++j) {
    e->unused[j] = e->same[j] = 0;
    e->seen[j] = e->constant[j] = 0;
    e->constant_value[j] = (real)NAN;
    e->offset[j] = R(0.0);
    e->period[j] = 0;
    e->series_count[j] = e->noisy[j] = 0;
    e->step[j] = RESOLUTION[j] > R(0.0) ? RESOLUTION[j] : (real)NAN;
  }
  e->nis = R(1.0);
  e->started = 1;
}

/* By what factor the middle one of the changes from sample to sample is off the median of the others: see
   monitor/steps.py. */
static real suddenness(const estimator *e, int j) {
  real changes[WIDTH_STEPS], others[WIDTH_STEPS - 1], middle, most = R(0.0), step = (real)INFINITY;
  int i, k, still[2] = {0, 0};
  for (i = 0; i < WIDTH_STEPS; ++i) changes[i] = e->recent_samples[i + 1][j] - e->recent_samples[i][j];
  for (i = k = 0; i < WIDTH_STEPS; ++i) {
    const real size = F(fabs)(changes[i]);
    if (size > R(0.0)) step = F(fmin)(step, size);
    if (i == SIDE) continue;
    if (changes[i] == R(0.0)) still[i > SIDE] = 1;
    others[k++] = changes[i];
  }
  if (still[0] != still[1]) return R(0.0);
  for (i = 0; i < WIDTH_STEPS; ++i)
    if (isnan(changes[i])) return (real)NAN;
  middle = median(others, WIDTH_STEPS - 1);
  for (i = 0; i < WIDTH_STEPS - 1; ++i) most = F(fmax)(most, F(fabs)(others[i] - middle));
  most += STEP_NOISES * STDDEV[j];
  if (still[0] && step < (real)INFINITY) most += step;
  return F(fabs)(changes[SIDE] - middle) / most;
}

/* Pressures that step alone, until they step back. */
static void find_steps(estimator *e, const real *newest) {
  int i;
  if (e->recent_rows == WIDTH_STEPS + 1)
    memmove(e->recent_samples[0], e->recent_samples[1], WIDTH_STEPS * sizeof e->recent_samples[0]);
  else
    ++e->recent_rows;
  memcpy(e->recent_samples[e->recent_rows - 1], newest, CHANNELS * sizeof(real));
  for (i = 0; e->recent_rows == WIDTH_STEPS + 1 && i < PARTNERS; ++i) {
    const int j = PARTNER[2 * i], other = PARTNER[2 * i + 1];
    const real size = e->recent_samples[SIDE + 1][j] - e->recent_samples[SIDE][j], old = e->stepped[j];
    if (!(F(fabs)(size) > SUDDEN_STEP * STEP_NOISES * STDDEV[j] && suddenness(e, j) > SUDDEN_STEP &&
          suddenness(e, other) < CALM_STEP)) continue;
    if (old * size < R(0.0) && F(fabs)(size) > BACK * F(fabs)(old)) e->stepped[j] = R(0.0);
    else if (old == R(0.0)) e->stepped[j] = size;
  }
}

/* Samples that measure nothing become NAN; the bits say why. */
static void refuse(estimator *e, const real *newest, unsigned *bits) {
  int j;
  find_steps(e, newest);
  for (j = 0; j < CHANNELS; ++j) {
    const real value = newest[j];
    if (value < VACUUM[j]) bits[j] |= @NAME@_BELOW_VACUUM;
    if (value < LOWEST[j] || value > HIGHEST[j]) bits[j] |= @NAME@_AT_END_OF_RANGE;
    if (value < NEAREST[j] || value > FARTHEST[j]) bits[j] |= @NAME@_FAR_AWAY;
    e->since_jump[j] = more(e->since_jump[j]);
    if (FASTEST[j] > R(0.0) && value - value == R(0.0)) {
      if (e->jump_known[j]) {
        const real allowed = FASTEST[j] * (TICK * (real)e->since_jump[j]) + NOISE[j], moved = value - e->jump_from[j];
        if (F(fabs)(moved) > allowed) e->jumped[j] += moved;
        if (F(fabs)(e->jumped[j]) <= allowed) e->jumped[j] = R(0.0);
      }
      e->jump_from[j] = value;
      e->jump_known[j] = 1;
      e->since_jump[j] = 0;
    }
    if ((e->jumped[j] != R(0.0) || e->stepped[j] != R(0.0)) && !(bits[j] & @NAME@_FAR_AWAY)) bits[j] |= @NAME@_JUMPED;
  }
}

/* Step of which all changes so far are multiples, down to finest; NAN: not known. */
static real common_step(real step, real change, real finest) {
  real large, small;
  if (isnan(change) || step == R(0.0)) return step;
  if (isnan(step)) return change > finest ? change : R(0.0);
  large = F(fmax)(step, change);
  small = F(fmin)(step, change);
  while (small > finest) {
    const real rest = F(fmod)(large, small);
    large = small;
    small = large - rest < finest ? R(0.0) : rest;
  }
  return large > R(2.0) * finest ? large : R(0.0);
}

/* Whether the samples before the last one had noise, by the median of their second differences. */
static int noisy(const estimator *e, int j) {
  real bends[SERIES];
  const real *const series = e->series[j];
  int i, n = 0;
  for (i = 0; i + 3 < e->series_count[j]; ++i)
    bends[n++] = F(fabs)(series[i] - R(2.0) * series[i + 1] + series[i + 2]);
  return n && e->step[j] == R(0.0) && median(bends, n) > GRAIN * STDDEV[j];
}

/* Remember what became of the samples. */
static void watch(estimator *e, const real *measured) {
  int j, count = 0;
  real sum = R(0.0);
  for (j = 0; j < CHANNELS; ++j) {
    const real value = measured[j];
    e->unused[j] = more(e->unused[j]);
    e->same[j] = more(e->same[j]);
    e->seen_ago[j] = more(e->seen_ago[j]);
    if (isnan(value)) continue;
    if (e->seen[j]) {
      if (e->period[j] && e->seen_ago[j] > PERIODS * e->period[j]) e->constant_value[j] = (real)NAN;
      e->period[j] = e->seen_ago[j];
    }
    e->seen[j] = 1;
    e->seen_ago[j] = 0;
    if (e->series_count[j] == SERIES)
      memmove(e->series[j], e->series[j] + 1, (SERIES - 1) * sizeof(real));
    else
      ++e->series_count[j];
    e->series[j][e->series_count[j] - 1] = value;
    if (e->rejected[j]) {
      e->offset[j] = e->variance[j] > R(0.0) ? F(fabs)(e->innovation[j]) / F(sqrt)(e->variance[j]) : (real)INFINITY;
    } else {
      e->unused[j] = 0;
      e->offset[j] = R(0.0);
    }
    if (value != e->constant_value[j]) {
      if (e->step[j] != R(0.0) && !(RESOLUTION[j] > R(0.0)))
        e->step[j] = common_step(e->step[j], F(fabs)(value - e->constant_value[j]), FINEST * STDDEV[j]);
      e->noisy[j] = 0;
      e->constant_value[j] = value;
      e->same[j] = 0;
      e->low[j] = (real)INFINITY;
      e->high[j] = -(real)INFINITY;
    } else if (!e->noisy[j]) {      /* repeated for the first time */
      e->noisy[j] = noisy(e, j) ? 2 : 1;
    }
    e->low[j] = F(fmin)(e->low[j], value - e->innovation[j]);
    e->high[j] = F(fmax)(e->high[j], value - e->innovation[j]);
    if (e->same[j] >= CONSTANT_TICKS &&
        (e->noisy[j] == 2 || e->high[j] - e->low[j] > MOVED * (STDDEV[j] + (isnan(e->step[j]) ? R(0.0) : e->step[j]))))
      e->constant[j] = 1;
    if (e->rejected[j]) continue;
    sum += e->innovation[j] * e->innovation[j] / e->variance[j];
    ++count;
  }
  if (count) e->nis += NIS_MEMORY * (sum / (real)count - e->nis);
}

/* Whether the state is known as well as it will be: after a while, and with its speeds as at a start, or no better. */
static int settled(estimator *e) {
  if (!e->settled && e->age >= SETTLE_TIME) {
    const int later = e->age - e->looked_at >= SETTLE_TIME;
    real worst = R(0.0);
    int i;
    for (i = 0; i < G; ++i)
      if (SHOWN[i]) worst = F(fmax)(worst, F(sqrt)(variance_of_motion(e, G + i)));
    e->settled = worst <= START_VELOCITY || (later && worst > FALLS * e->looked);
    if (later) {
      e->looked_at = e->age;
      e->looked = worst;
    }
  }
  return e->settled && e->age >= SETTLE_TIME;
}

/* Trust in the state, and why not more. */
static int judge(estimator *e, const real *measured, unsigned *bits, unsigned *reasons) {
  int j, i, refused_long = 0, refused = 0, sending = 0, wrong = 0, nothing = 1;
  for (j = 0; j < CHANNELS; ++j) {
    if (e->constant[j]) bits[j] |= @NAME@_CONSTANT;
    if (!bits[j] && isnan(measured[j])) bits[j] |= @NAME@_MISSING;
    if (bits[j]) wrong = 1;
    if (e->offset[j] > R(0.0)) bits[j] |= @NAME@_REJECTED;
    if (!isnan(measured[j])) nothing = 0;
    if (e->offset[j] > R(0.0) && e->unused[j] > DOUBT_TICKS) refused = 1;
    if (e->offset[j] > R(0.0) && e->unused[j] > LOST_TICKS) ++refused_long;
    if (e->seen[j] && !e->constant[j]) ++sending;
  }
  if (nothing) *reasons |= @NAME@_NOTHING_MEASURED;
  for (i = 0; i < NX && !(*reasons & (@NAME@_FAR_OUTSIDE | @NAME@_NOT_KNOWN)); ++i) {
    const real room = ROOM * (ENDS[i][1] - ENDS[i][0]), at = e->x[i], variance = variance_of_motion(e, i);
    const real out = F(fmax)(ENDS[i][0] - at, at - ENDS[i][1]) - room;
    if (isnan(room)) continue;
    if (out > R(0.0) && (i < G || out * out > DEEPEST * DEEPEST * variance)) *reasons |= @NAME@_FAR_OUTSIDE;
    else if (i < G && variance > room * room) *reasons |= @NAME@_NOT_KNOWN;
  }
  if (refused_long && 2 * refused_long >= sending) *reasons |= @NAME@_HALF_REJECTED;
  if (*reasons) return @NAME@_LOST;
  if (refused) *reasons |= @NAME@_DOUBTFUL;
  if (wrong || refused) return @NAME@_COASTING;
  return settled(e) ? @NAME@_OK : @NAME@_STARTING;
}

/* The observer's tick; 1 where it has started with this one. The state before is in mean. */
static int track(estimator *e, const @name@_input *in, @name@_output *out) {
  real measured[CHANNELS + 1], first[CHANNELS + 1], sum = R(0.0);
  int j, restart = !e->started;
  for (j = 0; j < CHANNELS; ++j) {
    const real before = e->last_sample[j], now = in->sample[j];
    const int whole = before - before == R(0.0) && now - now == R(0.0);
    measured[j] = whole ? now : (real)NAN;
    first[j] = whole ? before + (now - before) * (R(1.0) / SUBSTEPS) : (real)NAN;
    out->channel[j] = 0;
  }
  refuse(e, measured, out->channel);
  for (j = 0; j < CHANNELS; ++j) {
    if (out->channel[j] & @NAME@_JUMPED || (out->channel[j] && VACUUM[j] > -(real)INFINITY)) first[j] = (real)NAN;
    if (out->channel[j]) measured[j] = (real)NAN;
  }
  if (restart) begin(e, first, SUBSTEPS > 1 ? e->last_command : in->command);
  for (j = 0; j < CHANNELS; ++j) {
    if (e->constant[j] && measured[j] != e->constant_value[j]) e->constant[j] = 0;
    if (e->constant[j]) measured[j] = (real)NAN;
    e->sample[j] = measured[j];
  }
  memcpy(e->mean, e->x, sizeof e->mean);
  correct(e, in->command);
  memcpy(e->x, e->next, sizeof e->x);
  for (j = 0; j < NA; ++j) sum += e->x[j];
  out->reasons = 0;
  if (sum - sum == R(0.0)) {
    watch(e, measured);
    out->observer = judge(e, measured, out->channel, &out->reasons);
  } else {
    out->reasons = @NAME@_NOT_FINITE;
    out->observer = @NAME@_LOST;
  }
  e->age += TICK_S;
  if (out->observer == @NAME@_LOST) e->started = 0;@lost@
  return restart;
}
'''

APART = r'''
/* All steps of a tick from the state from: samples count in the last one. The end is in next; returns the channel
   that is farthest beyond the gate, -1: none. */
static int look(estimator *e, const real *from, const real *command) {
  int k, j, worst = -1;
  real most = R(0.0);
  memcpy(e->best, from, sizeof e->best);
  for (k = 0; k < SUBSTEPS; ++k) {
    for (j = 0; j < CHANNELS; ++j) e->u[j] = k == SUBSTEPS - 1 ? e->sample[j] : (real)NAN;
    for (j = 0; j < COMMANDS; ++j) e->u[CHANNELS + j] = k == SUBSTEPS - 1 ? command[j] : e->last_command[j];
    observe(e, e->best, e->next);
    memcpy(e->best, e->next, sizeof e->best);
  }
  for (j = 0; j < CHANNELS; ++j) {
    const real square = e->y[NX + j] * e->y[NX + j], variance = e->y[NX + CHANNELS + j];
    if (square > THRESHOLD * variance && (worst < 0 || square / variance > most)) {
      worst = j;
      most = square / variance;
    }
  }
  return worst;
}

/* The tick of the observer, samples beyond the gate left out: then the start counts as a shock, unless without them the
   machine was quiet. */
static void correct(estimator *e, const real *command) {
  int far = look(e, e->x, command), j, any = 0;
  for (j = 0; j < CHANNELS; ++j) e->rejected[j] = 0;
  memcpy(e->start, e->x, sizeof e->start);
  if (far >= 0) {
    for (j = 0; j < G; ++j) e->start[ACTIVITY + j] = LIVELIEST;
    while ((far = look(e, e->start, command)) >= 0 && !e->rejected[far]) {    /* each channel once */
      e->innovation[far] = e->y[NX + far];
      e->variance[far] = e->y[NX + CHANNELS + far];
      e->rejected[far] = 1;
      e->sample[far] = (real)NAN;
      any = 1;
    }
    if (any) {
      real kept[2 * CHANNELS + 1];
      memcpy(e->start, e->next, sizeof e->start); /* kept, should it not have been quiet */
      memcpy(kept, e->y + NX, 2 * CHANNELS * sizeof(real));
      if (look(e, e->x, command) >= 0) {
        memcpy(e->next, e->start, sizeof e->start);
        memcpy(e->y + NX, kept, 2 * CHANNELS * sizeof(real));
      }
    }
  }
  for (j = 0; j < CHANNELS; ++j) {
    if (e->rejected[j]) continue;
    e->innovation[j] = isnan(e->sample[j]) ? (real)NAN : e->y[NX + j];
    e->variance[j] = e->y[NX + CHANNELS + j];
  }
}

'''
COVARIANCE = '''
static real covariance(const estimator *e, int i, int j) { return e->x[packed(i, j)] * (SCALE[i] * SCALE[j]); }

static real variance_of_motion(const estimator *e, int i) { return covariance(e, i, i); }

'''
