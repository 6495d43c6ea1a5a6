# SPDX-License-Identifier: Apache-2.0
"""C of what finds wrong zeros of position sensors: as ``payload/zeros.py``."""

FIND_ZEROS = r'''static void solve(estimator *e);

/* By how much the sum of squares falls if one number alone may be anything; learnt: share of its variance that the
   masses have taken. */
static double gain_of(const estimator *e, int i, double *learnt) {
  *learnt = fmax(1.0 - e->prior[i] * e->P[i * M + i], UNLEARNT);
  return e->common[i] * e->common[i] * e->prior[i] / *learnt;
}

/* Which zeros of position sensors are not those of the file. */
static void find_zeros(estimator *e) {
  double best = 0.0, most = 0.0, size = 0.0, learnt;
  int i, k, place = 0, right = 0;
  for (i = 1; i < M; ++i) {
    double variance;
    if (!e->wrong_zero[i]) continue;
    (void)gain_of(e, i, &learnt);
    size = e->common[i] / learnt;
    variance = e->P[i * M + i] / learnt;
    if (variance >= 1.0 / e->belief || size * size >= ZERO_AGREES * ZERO_AGREES * (1.0 / e->belief + variance))
      continue;
    e->wrong_zero[i] = 0;
    e->prior[i] = e->belief;
    right = 1;
  }
  if (!right && e->corrected >= SOONEST) {
    for (i = 1; i < M; ++i) most = fmax(most, gain_of(e, i, &learnt));
    for (k = 0; k < ZERO_COUNT; ++k) {
      i = ZEROS[k];
      if (e->wrong_zero[i] || e->broken[i] || gain_of(e, i, &learnt) <= best) continue;
      best = gain_of(e, i, &learnt);
      size = e->common[i] / learnt;
      place = i;
    }
    if (place && best >= fmax(ZERO_SIGNIFICANT * ZERO_SIGNIFICANT, most - MARGIN) && fabs(size) > WRONG) {
      e->wrong_zero[place] = right = 1;
      e->prior[place] = 1.0 / (ZERO_WIDE * size * (ZERO_WIDE * size));
      e->surprise = 1.0;
      steps_clear(e);
    }
  }
  if (right) solve(e);
}

'''
