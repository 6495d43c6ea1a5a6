# SPDX-License-Identifier: Apache-2.0
"""C of the steps that masses take: as ``payload/steps.py``.

What was known before a block follows from what was known before the oldest, by entering the blocks again: a matrix for
each of them would need more memory than all else.
"""

from __future__ import annotations

STEPS = r'''/* Whether a block says something of the mass. */
static int weighs(const block *b) {
  int i;
  for (i = 0; i < WIDTH; ++i)
    if (!(b->sums[i] - b->sums[i] == 0.0)) return 0;
  return b->seconds > 0.0 && b->sums[0] > 0.0;
}

static block *nth(estimator *e, int k) { return e->blocks + e->recent[k]; }

static int entered(const estimator *e) {
  int k = 0;
  while (k < e->recent_count && e->blocks[e->recent[k]].before) ++k;
  return k;
}

/* Variance, kg2, of the mass by sums of blocks and their s of samples. */
static double noise_of(const double *sums, double seconds) {
  double square = 0.0;
  int i;
  for (i = 0; i < K; ++i) square += sums[2 + i] * VARYING[i] * (sums[2 + i] * VARYING[i]);
  return 1.0 / sums[0] + square / (sums[0] * sums[0]) * SAME / (double)seconds;
}

/* Mass and its derivatives (M,): row; the mass is returned and 1 in its place. */
static double row_of(const double *sums, double *row) {
  int i;
  for (i = 0; i < M; ++i) row[i] = sums[1 + i] / sums[0];
  {
    const double mass = row[0];
    row[0] = 1.0;
    return mass;
  }
}

/* Of what is known of mass or an error only a share still counts. */
static void leave_share(double *L, double *h, double share, int place) {
  double own[M];
  const double lost = (1.0 - share) / L[place * M + place], at = h[place];
  int i;
  if (share >= 1.0 || !(L[place * M + place] > 0.0)) return;
  for (i = 0; i < M; ++i) own[i] = L[i * M + place];
  add_square(L, own, -lost);
  for (i = 0; i < M; ++i) h[i] -= lost * at * own[i];
}

/* What a block did to the information L, h when it was entered. */
static void again(const block *b, double *L, double *h) {
  double row[M];
  int i;
  leave_share(L, h, b->share, 0);
  if (b->opened) {
    memset(L, 0, M * M * sizeof(double));
    memset(h, 0, M * sizeof(double));
    return;
  }
  for (i = 0; i < M * M; ++i) L[i] *= b->fade;
  for (i = 0; i < M; ++i) h[i] *= b->fade;
  {
    const double noise = noise_of(b->sums, b->seconds), mass = row_of(b->sums, row);
    add_square(L, row, 1.0 / noise);
    for (i = 0; i < M; ++i) h[i] += row[i] * (mass / noise);
  }
}

/* What was known before the block k of the recent ones, or now: information in then_L, then_h, mass and errors in
   then_x, the factor of their information in then_G. */
static void known_before(estimator *e, int k) {
  const int past = k < e->recent_count && nth(e, k)->before;
  int i, j;
  memcpy(e->then_L, past ? e->base_L : e->L, sizeof e->then_L);
  memcpy(e->then_h, past ? e->base_h : e->h, sizeof e->then_h);
  for (i = 0; past && i <= k; ++i) {
    if (i) leave_share(e->then_L, e->then_h, nth(e, i)->pre, 0);
    if (i < k) again(nth(e, i), e->then_L, e->then_h);
  }
  for (i = 0; i < M; ++i)
    for (j = 0; j <= i; ++j)
      e->then_G[i * (i + 1) / 2 + j] = e->then_L[i * M + j] +
                                       (i == j ? (past ? nth(e, k)->prior[i] : e->prior[i]) : 0.0);
  factor(e->then_G, M);
  memcpy(e->then_x, e->then_h, sizeof e->then_x);
  forward(e->then_G, M, e->then_x);
  backward(e->then_G, M, e->then_x);
}

static void steps_clear(estimator *e) {
  e->recent_count = 0;
  e->compared = e->said = 0;
  e->leans[0] = 0.0;
  e->lean_count = 1;
  e->since_change = LONG;
  e->lasted = 0;
  e->unsettled = 0;
}

static void lean_add(estimator *e, double size) {
  if (e->lean_count == SHORTEST) {
    memmove(e->leans, e->leans + 1, (SHORTEST - 1) * sizeof e->leans[0]);
    --e->lean_count;
  }
  e->leans[e->lean_count++] = size;
}

/* By how much the masses of the last second may be others. */
static double lean_of(const estimator *e) {
  double most = 0.0;
  int k;
  for (k = 0; k < e->lean_count; ++k)
    if (fabs(e->leans[k]) > fabs(most)) most = e->leans[k];
  return most;
}

static void steps_take(estimator *e, block *b) {
  if (e->recent_count == BLOCKS) {
    block *const oldest = nth(e, 0), *const next = nth(e, 1);
    if (oldest->before) {
      again(oldest, e->base_L, e->base_h);
      if (next->before) leave_share(e->base_L, e->base_h, next->pre, 0);
      next->pre = 1.0;
    }
    memmove(e->recent, e->recent + 1, (BLOCKS - 1) * sizeof e->recent[0]);
    --e->recent_count;
  }
  e->recent[e->recent_count++] = (unsigned char)(b - e->blocks);
  ++e->compared;
  b->loose = e->since_change < LEARNT;
  if (e->since_change < LONG) ++e->since_change;
}

/* Sums and s of the blocks from first to before last of the recent ones. */
static double joined(estimator *e, int first, int last, double *sums) {
  double seconds = 0.0;
  int i, k;
  memset(sums, 0, WIDTH * sizeof(double));
  for (k = first; k < last; ++k) {
    for (i = 0; i < WIDTH; ++i) sums[i] += nth(e, k)->sums[i];
    seconds += nth(e, k)->seconds;
  }
  return seconds;
}

/* The masses of the recent blocks from start on, in parts of so many: how far they are off what was known before, and
   the factor of their covariance; 0 where no step of them can be significant, unless it is wanted all the same. */
static int masses_of(estimator *e, int start, int size, int wanted) {
  double sums[WIDTH], square = 0.0;
  int n = 0, k, j;
  for (k = start; k < e->recent_count; k += size, ++n) {
    const double seconds = joined(e, k, k + size < e->recent_count ? k + size : e->recent_count, sums);
    double *const row = e->rows[n];
    const double mass = row_of(sums, row);
    e->off[n] = mass - dot(row, e->then_x, M);
    e->noise[n] = noise_of(sums, seconds);
    square += e->off[n] / e->noise[n] * e->off[n];
    forward(e->then_G, M, row);
  }
  e->may_step = !(square < 0.99 * (SIGNIFICANT * SIGNIFICANT));
  if (!(e->may_step || wanted)) return n;
  for (k = 0; k < n; ++k)
    for (j = 0; j <= k; ++j)
      e->spread[k * (k + 1) / 2 + j] = dot(e->rows[k], e->rows[j], M) + (j == k ? e->noise[k] : 0.0);
  factor(e->spread, n);
  forward(e->spread, n, e->off);
  return n;
}

/* The step that e->shape (n,) makes: size over deviation z, size, and the mean square of what it leaves over. */
static void fit(estimator *e, int n, double *z, double *size, double *left) {
  double information, by;
  forward(e->spread, n, e->shape);
  information = fmax(dot(e->shape, e->shape, n), TINY);
  by = dot(e->shape, e->off, n);
  *z = by / sqrt(information);
  *size = by / information;
  *left = (dot(e->off, e->off, n) - *z * *z) / (double)(n > 1 ? n - 1 : 1);
}

/* The shape of a step of the mass, place 0, or of an error: derivatives of the masses of parts from start on. */
static void shape_of(estimator *e, int start, int size, int place) {
  double sums[WIDTH];
  int n = 0, k;
  for (k = start; k < e->recent_count; k += size, ++n) {
    (void)joined(e, k, k + size < e->recent_count ? k + size : e->recent_count, sums);
    e->shape[n] = place ? sums[1 + place] / sums[0] : 1.0;
  }
}

/* A tenth, rounded to even. */
static int tenth(int n) {
  const int whole = n / 10, rest = n % 10;
  return rest > 5 || (rest == 5 && whole % 2) ? whole + 1 : whole;
}

static int at_least(int n, int least) { return n > least ? n : least; }

/* Which has taken a step in the window from start on, -1: none; *lean: by how much the mass leans. */
static int place_of(estimator *e, int start, int size, int n, double *lean) {
  double z, width, left, first, first_z, first_size, ramp, ramp_z, ramp_size, load, best = 0.0;
  int i, k, found = -1;
  shape_of(e, start, size, 0);
  fit(e, n, &first_z, &first_size, &left);
  first = fabs(first_z) > SIGNIFICANT && left < CONSISTENT ? first_z * first_z : 0.0;
  for (k = 0; k < n; ++k) e->shape[k] = (double)(k + 1) / (double)n;
  fit(e, n, &ramp_z, &ramp_size, &left);
  ramp = fabs(ramp_z) > SIGNIFICANT && left < CONSISTENT ? ramp_z * ramp_z : 0.0;
  *lean = fabs(first_z) > LEANS ? first_size : 0.0;
  if (fabs(ramp_z) > LEANS && fabs(ramp_size) > fabs(*lean)) *lean = ramp_size;
  if (!e->may_step) return -1;
  for (i = 0; i < SUDDEN_COUNT; ++i) {
    shape_of(e, start, size, SUDDEN[i]);
    fit(e, n, &z, &width, &left);
    e->squares[i] = fabs(z) > SIGNIFICANT && left < CONSISTENT ? z * z : 0.0;
    e->sizes[i] = fabs(width);
    best = fmax(best, e->squares[i]);
  }
  load = fmax(first, ramp);
  if (load != 0.0 && load > best - LOAD_SQUARE) return 0;
  if (!(best > fmax(first_z * first_z, ramp_z * ramp_z) + NUMBER_SQUARE)) return -1;
  for (i = 0; i < SUDDEN_COUNT; ++i)
    if (!(e->squares[i] < best - ALIKE) && (found < 0 || e->sizes[i] < e->sizes[found])) found = i;
  return SUDDEN[found];
}

/* The step of a place in the window from start on: with which block it begins, for how long it lasted; 0: none. */
static int begun(estimator *e, int start, int place, int *place_found, double *size_found, int *lasted) {
  const int n = masses_of(e, start, 1, 1), steps = at_least(n - SHORTEST + 1, 1), part = at_least(tenth(n), 1);
  double z, size, left, most = 0.0, load = 0.0, score = 0.0;
  int k, i, begin, end, first = 0, blocks = 0, any = 0;
  *lasted = 0;
  *size_found = 0.0;
  for (k = 0; k < steps; ++k) {
    for (i = 0; i < n; ++i) e->shape[i] = i >= k ? 1.0 : 0.0;
    fit(e, n, &z, &size, &left);
    if (!any || z * z > score) {
      any = 1;
      score = load = z * z;
      blocks = n - k;
      *size_found = size;
    }
  }
  for (begin = 0; begin <= n; begin += part)
    for (end = begin + part; end <= n; end += part) {
      if (end - begin < SHORTEST || n - begin < 2 * SHORTEST) continue;
      for (i = 0; i < n; ++i)
        e->shape[i] = fmin(fmax((double)(i + 1 - begin) / (double)(end - begin), 0.0), 1.0);
      fit(e, n, &z, &size, &left);
      if (z * z - NUMBER_SQUARE > score) {
        score = z * z - NUMBER_SQUARE;
        load = z * z;
        blocks = n - begin;
        *size_found = size;
        *lasted = (end < n - SHORTEST ? end : n - SHORTEST) - begin;
      }
    }
  *place_found = 0;
  if (!place) return fabs(*size_found) >= ANOTHER ? blocks : 0;
  for (k = 0; k < steps; ++k) {
    shape_of(e, start, 1, place);
    for (i = 0; i < k; ++i) e->shape[i] = 0.0;
    fit(e, n, &z, &size, &left);
    if (!k || fabs(z) > fabs(most)) {
      most = z;
      first = k;
      e->sizes[0] = size;
    }
  }
  if (load > fmax(most * most, SIGNIFICANT * SIGNIFICANT)) return fabs(*size_found) >= ANOTHER ? blocks : 0;
  if (!(WRONG < fabs(e->sizes[0]) && fabs(e->sizes[0]) < ABSURD) || most * most < NUMBER_SQUARE + load) return 0;
  *place_found = place;
  *size_found = e->sizes[0];
  *lasted = 0;
  return n - first;
}

/* Since so many blocks the mass or an error is another; 0: none. */
static int step_found(estimator *e, int *place, double *size, int *lasted) {
  const int now = entered(e);
  int k, before = e->recent_count + 1, largest = -1;
  for (k = 0; k < WINDOW_COUNT; ++k) {
    const int window = WINDOWS[k];
    int start, part, n, looked, at, found;
    double lean;
    if (e->recent_count < window || e->compared % (unsigned)at_least(window / PARTS, 1)) continue;
    start = e->recent_count - window < now ? e->recent_count - window : now;
    if (start >= before) continue;
    before = start;
    n = e->recent_count - start;
    if (e->compared < (unsigned)(n + LEARNT)) break;
    looked = largest < 0;
    largest = looked ? start : largest;
    known_before(e, start);
    part = at_least(tenth(n), 1);
    n = masses_of(e, start, part, looked);
    if (!(e->may_step || looked)) continue;
    at = place_of(e, start, part, n, &lean);
    if (looked) lean_add(e, lean);
    found = at < 0 ? 0 : begun(e, start, at, place, size, lasted);
    if (found) {
      ++e->said;
      return !*place || e->said >= AGAIN ? found : 0;
    }
  }
  e->said = 0;
  return 0;
}

/* The first of the recent blocks since the load has settled, if their masses are others than before; -1. */
static int settled_since(estimator *e) {
  double before[WIDTH], after[WIDTH], slopes[M], off, spread, through = 0.0;
  int k, i, last = -1, count, another;
  double seconds;
  for (k = 0; k < e->recent_count; ++k)
    if (nth(e, k)->loose) last = k;
  count = e->recent_count - last - 1;
  if (!e->unsettled || last < 0 || count < SHORTEST) return -1;
  seconds = joined(e, 0, last + 1, before);
  spread = noise_of(before, seconds);
  seconds = joined(e, last + 1, e->recent_count, after);
  spread += noise_of(after, seconds);
  off = after[1] / after[0] - before[1] / before[0];
  for (i = 0; i < K; ++i) {
    slopes[i] = after[2 + i] / after[0] - before[2 + i] / before[0];
    off -= slopes[i] * e->common[1 + i];
  }
  for (i = 0; i < K; ++i) through += slopes[i] * dot(e->P + (1 + i) * M + 1, slopes, K);
  spread = sqrt(spread + through);
  another = fabs(off) > (count < LEARNT ? SIGNIFICANT : LEANS) * spread;
  if (another) {
    for (k = 0; k < SHORTEST; ++k) lean_add(e, 0.0);
  } else {
    lean_add(e, fabs(off) > LEANS * spread ? off : 0.0);
  }
  e->unsettled = (unsigned char)(!another && count < LEARNT);
  return another ? last + 1 : -1;
}

'''
