# SPDX-License-Identifier: Apache-2.0
"""C of the observer's tick: as ``streams/stages.py: ObserverStage`` and ``estimators/hydraulic_observer.py``."""

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
       SUBSTEPS = @substeps@, ND = @nd@, NS = @ns@, NROW = @nrow@, WIDTH = @width@, GUARD = @guard@,
       WINDOW = @window@, BATCH = @batch@, ACTIVITY = @activity@, NEWTON = 30 };
enum { DOUBT_TICKS = @doubt_ticks@, LOST_TICKS = @lost_ticks@, CONSTANT_TICKS = @constant_ticks@,
       SETTLE_TICKS = @settle_ticks@, LONG = 1000000000 };

@prototypes@
@tables@
const char *const @name@_channel_names[] = {@channel_names@};
const char *const @name@_state_names[] = {@state_names@};

static unsigned more(unsigned count) { return count < (unsigned)LONG ? count + 1u : count; }

/* One step of the observer from x to next. */
static void observe(estimator *e, const real *x, real *next) {
  e->arg[0] = x; e->arg[1] = e->u; e->arg[2] = e->p;
  e->res[0] = next; e->res[1] = e->y;
  (void)@name@_casadi_observer(e->arg, e->res, e->iw, e->w, 0);
}

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

/* Place of a covariance in the packed state. */
static int packed(int i, int j) {
  const int row = i > j ? i : j, column = i > j ? j : i;
  return NX + column * NX - column * (column - 1) / 2 + row - column;
}

static real covariance(const estimator *e, int i, int j) { return e->x[packed(i, j)] * (SCALE[i] * SCALE[j]); }

@place_function@/* State from the first samples: at rest. */
static void begin(estimator *e, const real *first, const real *command) {
  int i, j;
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
  for (j = 0; j < CHANNELS; ++j) {
    e->unused[j] = e->same[j] = 0;
    e->seen[j] = e->constant[j] = 0;
    e->constant_value[j] = (real)NAN;
    e->offset[j] = R(0.0);
  }
  e->age = 0;
  e->nis = R(1.0);
  e->started = 1;
}

/* Samples that measure nothing become NAN; the bits say why. */
static void refuse(estimator *e, const real *newest, unsigned *bits) {
  int j;
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
    if (e->jumped[j] != R(0.0) && !(bits[j] & @NAME@_FAR_AWAY)) bits[j] |= @NAME@_JUMPED;
  }
}

/* Remember what became of the samples. */
static void watch(estimator *e, const real *measured) {
  int j, count = 0;
  real sum = R(0.0);
  for (j = 0; j < CHANNELS; ++j) {
    const real value = measured[j];
    e->unused[j] = more(e->unused[j]);
    e->same[j] = more(e->same[j]);
    if (isnan(value)) continue;
    e->seen[j] = 1;
    if (e->rejected[j]) {
      e->offset[j] = e->variance[j] > R(0.0) ? F(fabs)(e->innovation[j]) / F(sqrt)(e->variance[j]) : (real)INFINITY;
    } else {
      e->unused[j] = 0;
      e->offset[j] = R(0.0);
    }
    if (value != e->constant_value[j]) {
      e->constant_value[j] = value;
      e->same[j] = 0;
      e->low[j] = (real)INFINITY;
      e->high[j] = -(real)INFINITY;
    }
    e->low[j] = F(fmin)(e->low[j], value - e->innovation[j]);
    e->high[j] = F(fmax)(e->high[j], value - e->innovation[j]);
    if (e->same[j] >= CONSTANT_TICKS && e->high[j] - e->low[j] > MOVED * STDDEV[j]) e->constant[j] = 1;
    if (e->rejected[j]) continue;
    sum += e->innovation[j] * e->innovation[j] / e->variance[j];
    ++count;
  }
  if (count) e->nis += NIS_MEMORY * (sum / (real)count - e->nis);
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
  for (i = 0; i < G; ++i) {
    const real room = ROOM * (RANGE[i][1] - RANGE[i][0]), at = e->x[i];
    const int inside = RANGE[i][0] - room <= at && at <= RANGE[i][1] + room;
    if (!inside || covariance(e, i, i) > room * room) *reasons |= @NAME@_FAR_OUTSIDE;
  }
  if (refused_long && 2 * refused_long >= sending) *reasons |= @NAME@_HALF_REJECTED;
  if (*reasons) return @NAME@_LOST;
  if (refused) *reasons |= @NAME@_DOUBTFUL;
  if (wrong || refused) return @NAME@_COASTING;
  return e->age < SETTLE_TICKS ? @NAME@_STARTING : @NAME@_OK;
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
  e->age = more(e->age);
  if (out->observer == @NAME@_LOST) e->started = 0;
  return restart;
}
'''
