# SPDX-License-Identifier: Apache-2.0
"""C of what weighs with pressures as they are and exchanged, and finds contacts: as ``monitor/exchanged.py`` and
``monitor/one_signal.py``."""

from __future__ import annotations

EXCHANGED = r'''/* Whether both pressures of a cylinder show one signal, with new samples. */
static void watch_signals(estimator *e, const real *sample) {
  int w, i;
  for (w = 0; w < WAYS; ++w) {
    const int own[2] = {PAIR_CHANNEL[2 * w], PAIR_CHANNEL[2 * w + 1]};
    const real share = (real)(TICK_S < SIGNAL_TIME ? TICK_S / SIGNAL_TIME : 1.0);
    real *const mean = e->signal_mean + 3 * w, *const variance = e->signal_variance + 3 * w;
    real row[3], moves, noise = R(0.0), room = R(0.0), apart = R(0.0);
    for (i = 0; i < 2; ++i) {
      const int j = own[i];
      const real stddev = STDDEV[j] / GAIN[j], zero = ZERO_STDDEV[j] / GAIN[j];
      row[i] = (sample[j] - OFFSET[j]) / GAIN[j] + ZERO[j];
      noise = F(fmax)(noise, stddev);
      room += stddev * stddev;
      apart += stddev * stddev + zero * zero;
    }
    row[2] = row[0] - row[1];
    if (isnan(row[2])) continue;
    for (i = 0; i < 3; ++i) {
      real off;
      if (e->signal_seen[w] == 0.0) mean[i] = row[i];
      off = row[i] - mean[i];
      mean[i] += share * off;
      variance[i] = (R(1.0) - share) * (variance[i] + share * (off * off));
    }
    e->signal_seen[w] += TICK_S;
    moves = F(fmin)(variance[0], variance[1]);
    if (e->signal_seen[w] >= SIGNAL_TIME && moves > SIGNAL_MOVES * noise * (SIGNAL_MOVES * noise))
      e->one_signal[w] = variance[2] <= ONE_LINE * ONE_LINE * moves + R(2.0) * room &&
                         F(fabs)(mean[2]) <= ONE_LINE * F(fabs)(mean[0]) + SIGNAL_SURE * F(sqrt)(apart);
  }
}

static int one_signal(const estimator *e) {
  int w;
  for (w = 0; w < WAYS; ++w)
    if (e->one_signal[w]) return 1;
  return 0;
}

/* What follows does not continue the motion before, or is not known well enough. */
static void interrupt(estimator *e) {
  e->ways_placed = e->window_begun = e->touches = 0;
  e->window_lasted = 0.0;
}

/* All masses within the limits are possible. */
static void ways_begin(estimator *e) {
  int w;
  for (w = 0; w <= WAYS; ++w) {
    e->ways_low[w] = LIGHTEST;
    e->ways_high[w] = HEAVIEST;
  }
  e->unexplained = 0;
}

/* What the windows so far say. */
static void ways_conclude(estimator *e) {
  int w, some = 0;
  e->ways_found = e->ways_open = 0;
  for (w = 1; w <= WAYS; ++w) {
    const real middle = (e->ways_low[w] + e->ways_high[w]) / R(2.0);
    if (!e->suspected[w]) continue;
    some = 1;
    if (e->contradictions >= CONTRADICTIONS) e->ways_found = 1;
    if (middle < e->ways_low[0] || middle > e->ways_high[0]) e->ways_open = 1;
  }
  e->ways_known = !(e->unexplained || some);
}

static void ways_reset(estimator *e) {
  int w;
  interrupt(e);
  memset(e->signal_variance, 0, sizeof e->signal_variance);
  memset(e->signal_seen, 0, sizeof e->signal_seen);
  memset(e->one_signal, 0, sizeof e->one_signal);
  for (w = 0; w <= WAYS; ++w) e->suspected[w] = e->other_way[w] = 1;
  e->contradictions = e->contradicting = e->contact_begun = e->pushed_windows = e->exchanged = 0;
  e->ways_free = e->pushed_for = 0.0;
  ways_begin(e);
  ways_conclude(e);
}

/* Masses from low to high are possible in a window, by way. */
static void ways_judge(estimator *e, const real *low, const real *high) {
  int w, once_more = 1;
  while (once_more) {
    real least[WAYS + 1], most[WAYS + 1];
    int left[WAYS + 1], explains = 0, some = 0;
    once_more = 0;
    for (w = 0; w <= WAYS; ++w) {
      least[w] = F(fmax)(e->ways_low[w], low[w]);
      most[w] = F(fmin)(e->ways_high[w], high[w]);
      left[w] = most[w] >= least[w];
      explains |= w && left[w] && (e->suspected[w] || e->unexplained);
    }
    if (left[0]) {
      for (w = 1; w <= WAYS; ++w) {
        e->suspected[w] = e->suspected[w] && left[w];
        some |= e->suspected[w];
      }
      e->contradictions *= some;
    } else if (explains) {
      for (w = 1; w <= WAYS; ++w) e->suspected[w] = left[w] && (e->unexplained || e->suspected[w]);
    } else {
      once_more = e->unexplained;
      e->unexplained = 1;
      if (once_more) ways_begin(e);
      continue;
    }
    if (!left[0]) {
      const int direction = F(fmax)(low[0], LIGHTEST) > F(fmin)(high[0], HEAVIEST) ? 0 :
                            F(fmax)(low[0], LIGHTEST) > e->ways_low[0] ? 1 : -1;
      e->contradictions += direction == 0 || direction != e->contradicting;
      e->contradicting = direction;
      least[0] = F(fmax)(low[0], LIGHTEST);
      most[0] = F(fmin)(high[0], HEAVIEST);
      left[0] = -1;     /* the others stay as they are */
    }
    for (w = 0; w <= WAYS; ++w) {
      e->ways_low[w] = left[w] || left[0] < 0 ? least[w] : least[0];
      e->ways_high[w] = left[w] || left[0] < 0 ? most[w] : most[0];
    }
    e->unexplained = 0;
  }
}

/* Whether a window is one of a contact: its equations contradict each other, or several weigh less than nothing. */
static void touch(estimator *e, const real *low, const real *high, int several) {
  const int pushed = low[0] > high[0] || (several && high[0] < LIGHTEST);
  int w, any = 0;
  if (!pushed) {
    e->ways_free += e->window_lasted;
    if (e->ways_free >= FREE || e->pushed_windows < TWICE) {
      e->pushed_for = 0.0;
      e->pushed_windows = 0;
    }
    return;
  }
  if (!e->pushed_windows) e->contact_begun = e->ways_free >= FREE;
  for (w = 1; w <= WAYS; ++w) {
    const int other = F(fmax)(low[w], LIGHTEST) <= F(fmin)(high[w], HEAVIEST);
    e->other_way[w] = other && (e->pushed_windows < TWICE || e->other_way[w]);
    any |= e->other_way[w];
  }
  e->ways_free = 0.0;
  e->pushed_for += e->window_lasted;
  ++e->pushed_windows;
  e->touches = e->contact_begun && e->pushed_windows >= TWICE && !any && e->pushed_for <= LONGEST_CONTACT;
}

/* The window's state and covariance, as masses by way: what is possible. */
static void ways_weigh(estimator *e) {
  real low[WAYS + 1], high[WAYS + 1], sure_low[WAYS + 1], sure_high[WAYS + 1];
  const real mass = isnan(e->mass.mass) ? R(0.0) : e->mass.mass, at = F(fmin)(F(fmax)(mass, LIGHTEST), HEAVIEST);
  int w, i, sure = 0;
  e->touches = 0;
  if (!e->ways_placed) {
    for (i = 0; i < NS; ++i) e->ways_near[i] = R(0.0);
    @place_ways@
    e->ways_placed = 1;
  }
  e->arg[0] = e->ways_near; e->arg[1] = e->window_x; e->arg[2] = e->window_P; e->arg[3] = &at;
  e->arg[4] = GATES + GATE_COUNT;
  e->res[0] = e->xs_next; e->res[1] = e->ways_masses; e->res[2] = e->ways_rooms;
  (void)@name@_casadi_exchanged(e->arg, e->res, e->iw, e->w, 0);
  for (i = 0; i < ND; ++i) {
    e->ways_near[i] = e->xs_next[i];
    if (!(e->xs_next[i] - e->xs_next[i] == R(0.0))) e->ways_placed = 0;
  }
  for (w = 0; w <= WAYS; ++w) {
    low[w] = sure_low[w] = -(real)INFINITY;
    high[w] = sure_high[w] = (real)INFINITY;
    for (i = 0; i < EQUATIONS; ++i) {
      const real one = e->ways_masses[w * EQUATIONS + i], room = e->ways_rooms[w * EQUATIONS + i];
      low[w] = F(fmax)(low[w], one - room);
      high[w] = F(fmin)(high[w], one + room);
      if (!(room <= ROUGH_MASS)) continue;
      sure_low[w] = F(fmax)(sure_low[w], one - room);
      sure_high[w] = F(fmin)(sure_high[w], one + room);
      sure += !w;
    }
  }
  touch(e, sure_low, sure_high, sure > 1);
  if (e->touches) ways_begin(e);
  else ways_judge(e, low, high);
  ways_conclude(e);
}

/* The sums of a window with a state and its samples. */
static void window_add(estimator *e, const real *sample, real weight) {
  int i;
  for (i = 0; i < NE; ++i) e->window_x[i] += weight * e->x[i];
  for (i = 0; i < SEEN; ++i) {
    const int j = SEEN_CHANNEL[i];
    if (!(F(fabs)(e->innovation[j]) < LIKELY * F(sqrt)(e->variance[j]))) continue;
    e->window_used[i] += weight;
    if (!isnan(sample[j])) e->window_sum[i] += weight * sample[j];
  }
}

/* State and covariance of a window between two states: acceleration by the speeds at both ends, pressures as
   measured. */
static void window_mean(estimator *e) {
  const real lasted = (real)e->window_lasted;
  int i, k;
  for (i = 0; i < NE; ++i) e->window_x[i] /= (real)e->window_rows;
  for (i = 0; i < NE; ++i)
    for (k = 0; k < NE; ++k) e->window_P[i * NE + k] = covariance(e, i, k);
  for (i = 0; i < SEEN; ++i) {
    const int at = SEEN_ENTRY[i], j = SEEN_CHANNEL[i];
    if (!(e->window_used[i] > R(0.0))) continue;
    e->window_x[at] = (e->window_sum[i] / e->window_used[i] - OFFSET[j]) / GAIN[j] + ZERO[j];
    for (k = 0; k < NE; ++k) e->window_P[at * NE + k] = e->window_P[k * NE + at] = R(0.0);
    e->window_P[at * NE + at] = STDDEV[j] * STDDEV[j] / (GAIN[j] * GAIN[j]) / e->window_used[i];
  }
  for (i = 0; i < G; ++i) {
    e->window_x[2 * G + i] = (e->x[G + i] - e->window_speed[i]) / lasted;
    for (k = 0; k < NE; ++k) e->window_P[(2 * G + i) * NE + k] = e->window_P[k * NE + 2 * G + i] = R(0.0);
  }
  for (i = 0; i < G; ++i)
    for (k = 0; k < G; ++k)
      e->window_P[(2 * G + i) * NE + 2 * G + k] =
          (covariance(e, G + i, G + k) + e->window_spread[i * G + k]) / (lasted * lasted);
}

/* A state that nothing speaks against, with its samples. */
static void weigh_both_ways(estimator *e, const real *sample) {
  int i, k;
  if (e->window_begun) {
    window_add(e, sample, R(1.0));
    ++e->window_rows;
    e->window_lasted += TICK_S;
    if (e->window_lasted < WINDOW_S * (1 + (e->ways_known && !e->pushed_windows)) - TICK_S / 2.0) return;
    window_add(e, sample, R(-0.5));
    window_mean(e);
    ways_weigh(e);
  }
  e->window_begun = 1;
  e->window_rows = 0;
  e->window_lasted = 0.0;
  memset(e->window_x, 0, sizeof e->window_x);
  memset(e->window_used, 0, sizeof e->window_used);
  memset(e->window_sum, 0, sizeof e->window_sum);
  window_add(e, sample, R(0.5));
  for (i = 0; i < G; ++i) {
    e->window_speed[i] = e->x[G + i];
    for (k = 0; k < G; ++k) e->window_spread[i * G + k] = covariance(e, G + i, G + k);
  }
}

'''
