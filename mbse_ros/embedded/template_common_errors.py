# SPDX-License-Identifier: Apache-2.0
"""C of the errors that all masses have in common: as ``payload/common_errors.py``; before it the algebra for them."""

from __future__ import annotations

ALGEBRA = r'''
/* Cholesky factor of a positive matrix (n, n), its lower triangle row by row. */
static void factor(double *a, int n) {
  int i, j, k;
  for (i = 0; i < n; ++i) {
    double *const own = a + i * (i + 1) / 2;
    for (j = 0; j <= i; ++j) {
      const double *const other = a + j * (j + 1) / 2;
      double sum = own[j];
      for (k = 0; k < j; ++k) sum -= own[k] * other[k];
      own[j] = i == j ? sqrt(fmax(sum, TINY)) : sum / other[j];
    }
  }
}

/* x (n,) by the factor, forwards. */
static void forward(const double *a, int n, double *x) {
  int i, k;
  for (i = 0; i < n; ++i) {
    const double *const own = a + i * (i + 1) / 2;
    for (k = 0; k < i; ++k) x[i] -= own[k] * x[k];
    x[i] /= own[i];
  }
}

/* ... and backwards. */
static void backward(const double *a, int n, double *x) {
  int i, k;
  for (i = n - 1; i >= 0; --i) {
    for (k = i + 1; k < n; ++k) x[i] -= a[k * (k + 1) / 2 + i] * x[k];
    x[i] /= a[i * (i + 1) / 2 + i];
  }
}

static double dot(const double *a, const double *b, int n) {
  double sum = 0.0;
  int i;
  for (i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/* a += factor column column', both (M, M) and (M,). */
static void add_square(double *a, const double *column, double factor) {
  int i, j;
  for (i = 0; i < M; ++i)
    for (j = 0; j < M; ++j) a[i * M + j] += column[i] * column[j] * factor;
}

/* Chance that a chi-squared number of so many degrees of freedom exceeds x, where that is small: by the continued
   fraction of the incomplete gamma function (Lentz). */
static double exceeds(double freedom, double x) {
  const double a = freedom / 2.0, at = x / 2.0;
  double b = at + 1.0 - a, c = 1.0 / TINY, d = 1.0 / b, h = d;
  int i;
  if (!(at > a + 1.0)) return 1.0;
  for (i = 1; i < 200; ++i) {
    const double an = -(double)i * ((double)i - a);
    double step;
    b += 2.0;
    d = 1.0 / (an * d + b);
    c = b + an / c;
    step = d * c;
    h *= step;
    if (fabs(step - 1.0) < EPSILON) break;
  }
  return exp(a * log(at) - at - lgamma(a)) * h;
}

'''

ERRORS = r'''/* Errors and mass from the information. */
static void solve(estimator *e) {
  int i, j;
  for (i = 0; i < M; ++i)
    for (j = 0; j <= i; ++j)
      e->then_G[i * (i + 1) / 2 + j] = e->L[i * M + j] + (i == j ? e->prior[i] : 0.0);
  factor(e->then_G, M);
  for (i = 0; i < M; ++i) {
    double *const row = e->P + i * M;     /* of the inverse, which is symmetric */
    memset(row, 0, M * sizeof(double));
    row[i] = 1.0;
    forward(e->then_G, M, row);
    backward(e->then_G, M, row);
  }
  for (i = 0; i < M; ++i) e->common[i] = dot(e->P + i * M, e->h, M);
}

static void lose(estimator *e, double share, int place) {
  double own[M], column[M];
  const double there = e->L[place * M + place], lost = (1.0 - share) / there;
  int i;
  if (share >= 1.0 || !(there > 0.0)) return;
  for (i = 0; i < M; ++i) own[i] = e->L[i * M + place];
  leave_share(e->L, e->h, share, place);
  if (share < MOST) {
    solve(e);
    return;
  }
  for (i = 0; i < M; ++i) column[i] = dot(e->P + i * M, own, M);
  add_square(e->P, column, lost / (1.0 - lost * dot(own, column, M)));
  for (i = 0; i < M; ++i) e->common[i] = dot(e->P + i * M, e->h, M);
}

/* Take the stated deviations times a factor. */
static void believe(estimator *e, double belief) {
  int i;
  e->belief = belief;
  for (i = 1; i < M; ++i)
    if (!e->wrong_zero[i]) e->prior[i] = belief;
  solve(e);
}

/* Whether errors as large as those found can be; worst: place of the farthest. */
static void judge_errors(estimator *e) {
  double size = 0.0, first = 0.0, second = 0.0;
  int i, j, some = 0, worst = 0, well = 0;
  e->incredible = 0;
  find_zeros(e);
  for (i = 1; i < M; ++i) some |= e->broken[i];
  for (i = 1; i < M; ++i) {
    if (e->wrong_zero[i]) continue;
    size += e->common[i] * e->common[i];
    first += 1.0 - e->P[i * M + i] * e->belief;
    for (j = 1; j < M; ++j) {
      const double learnt = e->wrong_zero[j] ? 0.0 : (i == j ? 1.0 : 0.0) - e->P[i * M + j] * e->belief;
      second += learnt * learnt;
    }
  }
  if (!some && size <= SAFE * first) return;
  for (i = 1; i < M; ++i)
    if (e->broken[i] && (!worst || fabs(e->common[i]) > fabs(e->common[worst]))) worst = i;
  if (worst && fabs(e->common[worst]) > WRONG) {
    e->incredible = worst;
    return;
  }
  for (i = 1; i < M; ++i) {
    if (!(e->broken[i] && e->P[i * M + i] < 1.0)) continue;
    e->prior[i] = e->belief;
    e->broken[i] = 0;
    well = 1;
  }
  if (well) {
    solve(e);
    size = 0.0;
    for (i = 1; i < M; ++i) size += e->wrong_zero[i] ? 0.0 : e->common[i] * e->common[i];
  }
  if (!(first > LEAST_LEARNT) || !(exceeds(first * first / second, size * first / second) < CREDIBLE)) return;
  for (i = 1; i < M; ++i)
    if (!e->wrong_zero[i] && (!e->incredible || fabs(e->common[i]) > fabs(e->common[e->incredible])))
      e->incredible = i;
}

/* Find errors and mass again: what was found does not agree with what comes. */
static void open_errors(estimator *e) {
  memset(e->L, 0, sizeof e->L);
  memset(e->h, 0, sizeof e->h);
  steps_clear(e);
  memset(e->broken, 0, sizeof e->broken);
  believe(e, 1.0 / (DOUBTED * DOUBTED));
  e->surprise = 1.0;
  e->corrected = 0;
  e->opened = 1;
  e->incredible = 0;
}

/* Correct by a block. */
static void enter(estimator *e, block *b) {
  const double share = b->loose ? NOTHING : exp(fmax(b->kept, -700.0));
  const int some = weighs(b);
  double row[M], column[M], mass, noise, variance, error;
  int i;
  if (some) {
    if (!(e->recent_count && nth(e, 0)->before)) {
      memcpy(e->base_L, e->L, sizeof e->base_L);
      memcpy(e->base_h, e->h, sizeof e->base_h);
      e->pending = 1.0;
    }
    b->pre = e->pending;
    b->share = share;
    b->fade = e->pending = 1.0;
    b->opened = 0;
    memcpy(b->prior, e->prior, sizeof b->prior);
  } else {
    e->pending *= share;
  }
  b->before = 1;
  lose(e, share, 0);
  if (!some) return;
  e->fading += b->seconds;
  if (e->fading > FADES - TICK_ROUND) {
    b->fade = (double)exp(-e->fading / MEMORY);
    e->fading = 0.0;
    for (i = 0; i < M * M; ++i) e->L[i] *= b->fade;
    for (i = 0; i < M; ++i) e->h[i] *= b->fade;
    solve(e);
  }
  noise = noise_of(b->sums, b->seconds);
  mass = row_of(b->sums, row);
  for (i = 0; i < M; ++i) column[i] = dot(e->P + i * M, row, M);
  variance = dot(row, column, M) + noise;
  error = mass - dot(row, e->common, M);
  e->surprise += FADED * (error * error / variance - e->surprise);
  e->corrected = more(e->corrected);
  if (e->surprise > SURPRISED && e->corrected > LEARNING && !e->said) {
    b->opened = 1;
    open_errors(e);
    return;
  }
  add_square(e->L, row, 1.0 / noise);
  add_square(e->P, column, -1.0 / variance);
  for (i = 0; i < M; ++i) {
    e->h[i] += row[i] * (mass / noise);
    e->common[i] += column[i] * (error / variance);
  }
  judge_errors(e);
  if (e->corrected == LEARNING && !e->incredible) {
    believe(e, 1.0);
    judge_errors(e);
  }
}

static void enter_first(estimator *e) {
  block *const b = e->blocks + e->due[0];
  --e->due_count;
  memmove(e->due, e->due + 1, sizeof e->due - sizeof e->due[0]);
  memmove(e->due_at, e->due_at + 1, sizeof e->due_at - sizeof e->due_at[0]);
  enter(e, b);
}

static void enter_due(estimator *e) {
  while (e->due_count && e->due_at[0] <= e->common_now + TICK_ROUND) enter_first(e);
}

/* Leave out the samples of the last second. */
static void doubt_errors(estimator *e) {
  int k;
  for (k = 0; k < e->due_count; ++k) e->blocks[e->due[k]].seconds = 0.0;
  e->said = 0;
  while (e->recent_count && !nth(e, e->recent_count - 1)->before) --e->recent_count;
  memset(e->sums, 0, sizeof e->sums);
  e->summed = 0;
}

/* A block that neither waits nor is one of the recent ones. */
static block *free_block(estimator *e) {
  int k, i, taken;
  for (k = 0; k < POOL - 1; ++k) {
    for (i = taken = 0; i < e->recent_count; ++i) taken |= e->recent[i] == k;
    for (i = 0; i < e->due_count; ++i) taken |= e->due[i] == k;
    if (!taken) break;
  }
  return e->blocks + k;
}

/* The block is complete; 1 where it says something of the mass. */
static int close_block(estimator *e) {
  double kept = 0.0;
  int k, some = 0;
  enter_due(e);
  if (e->summed || e->common_kept < 0.0) {
    block *const b = free_block(e);
    memset(b, 0, sizeof *b);
    memcpy(b->sums, e->sums, sizeof b->sums);
    b->seconds = (double)e->summed * STEP_S;
    b->kept = e->common_kept;
    if (e->due_count == DUE) enter_first(e);
    e->due[e->due_count] = (unsigned char)(b - e->blocks);
    e->due_at[e->due_count++] = e->common_now + DELAY;
    if (e->common_kept < -CHANGED) {
      steps_clear(e);
    } else if (weighs(b)) {
      steps_take(e, b);
      some = 1;
    }
  }
  memset(e->sums, 0, sizeof e->sums);
  e->summed = e->passed = 0;
  e->common_kept = 0.0;
  for (k = 0; k < e->due_count; ++k) kept += e->blocks[e->due[k]].kept;
  if (!(kept < -CHANGED)) return some;
  doubt_errors(e);
  return 0;
}

/* Where the masses say that the load is another, or a sensor wrong: forget what was known of it. 1: sums since. */
static int changed(estimator *e, double *since) {
  unsigned char own[BLOCKS];
  int place, lasted, blocks = step_found(e, &place, &e->step_size, &lasted), begin, first, count, k;
  if (!blocks) {
    first = settled_since(e);
    if (first >= 0) (void)joined(e, first, e->recent_count, since);
    return first >= 0;
  }
  begin = e->recent_count - blocks;
  first = place ? begin : at_least(begin - EARLIER, 0);
  for (k = first; k < begin; ++k) nth(e, k)->seconds = 0.0;
  if (nth(e, first)->before) {
    known_before(e, first);
    memcpy(e->L, e->then_L, sizeof e->L);
    memcpy(e->h, e->then_h, sizeof e->h);
  }
  count = e->recent_count - begin;
  memcpy(own, e->recent + begin, (size_t)count);
  if (!e->blocks[own[0]].before)
    while (e->due[0] != own[0]) enter_first(e);
  steps_clear(e);
  e->surprise = 1.0;
  if (place) {
    const double width = 1.0 / (OPENED_STEP * e->step_size * (OPENED_STEP * e->step_size));
    e->broken[place] = 1;
    e->prior[place] = fmin(e->prior[place], width);
  }
  lose(e, NOTHING, place);
  solve(e);
  for (k = 0; k < lasted; ++k) e->blocks[own[k]].seconds = 0.0;
  memset(since, 0, WIDTH * sizeof(double));
  for (k = lasted; k < count; ++k) {
    block *const b = e->blocks + own[k];
    int i;
    if (b->before) enter(e, b);
    steps_take(e, b);
    for (i = 0; i < WIDTH; ++i) since[i] += b->sums[i];
  }
  if (!place) {
    e->since_change = 0;
    e->lasted = (unsigned)(lasted < LEARNT ? lasted : LEARNT);
    e->unsettled = 1;
  }
  judge_errors(e);
  return 1;
}

/* A step of the log: its row counts, or not; lost: logarithm of the share of older information that still counts.
   1: the load, or a sensor, is another, with the sums since. */
static int take_step(estimator *e, const real *row, int counts, double lost, double *since) {
  int i;
  for (i = 0; counts && i < WIDTH; ++i) e->sums[i] += (double)row[i];
  e->summed += counts;
  e->common_kept += lost;
  ++e->passed;
  e->common_now += STEP_S;
  return (e->summed >= FULL || e->passed >= LONGEST) && close_block(e) && changed(e, since);
}

static void errors_begin(estimator *e) {
  memset(e->L, 0, sizeof e->L);
  memset(e->h, 0, sizeof e->h);
  memset(e->sums, 0, sizeof e->sums);
  memset(e->broken, 0, sizeof e->broken);
  memset(e->wrong_zero, 0, sizeof e->wrong_zero);
  e->due_count = e->summed = e->passed = e->opened = e->incredible = 0;
  e->corrected = 0;
  e->common_now = e->fading = 0.0;
  e->common_kept = 0.0;
  e->surprise = e->pending = 1.0;
  e->prior[0] = 1.0 / UNKNOWN_VARIANCE;
  steps_clear(e);
  believe(e, 1.0);
}

'''
