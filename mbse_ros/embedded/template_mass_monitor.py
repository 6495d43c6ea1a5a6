# SPDX-License-Identifier: Apache-2.0
"""C of what judges states and masses: as ``streams/mass_monitor.py`` with ``monitor/mass.py``."""

from __future__ import annotations

MONITOR = r'''/* By how much two masses differ without what is known of the errors; spread: its deviation. */
static real apart(const estimator *e, const weighed_mass *a, const weighed_mass *b, real *spread) {
  double slopes[K + 1], square;
  int i;
  *spread = R(0.0);
  if (a->whole != b->whole) return a->mass - b->mass;
  for (i = 0; i < K; ++i) slopes[i] = a->slopes[i] - b->slopes[i];
  {
    const real known = (real)through(e, slopes, &square);
    *spread = (real)sqrt(square);
    return a->weighed - b->weighed - known;
  }
}

static void keep_mass(const estimator *e, weighed_mass *to) {
  to->mass = e->mass.mass;
  to->noise = e->mass.noise;
  to->weighed = e->mass.weighed;
  to->whole = e->mass.whole;
  memcpy(to->slopes, e->mass.slopes, sizeof to->slopes);
}

static int agree(const estimator *e, const weighed_mass *a, const weighed_mass *b, real room, real deviations) {
  real spread;
  const real off = apart(e, a, b, &spread);
  return F(fabs)(off) <= F(hypot)(room, deviations * spread);
}

/* Whether a mass is known to that share of the range, and the same as half a second before. */
static int quiet(const estimator *e, const weighed_mass *a, const weighed_mass *b, real deviations, real known) {
  return a->noise < known * SPAN && agree(e, a, b, deviations * a->noise, deviations);
}

/* Whether the load changes. */
static void watch_load(estimator *e) {
  const double t = e->now * 1e-9, kept = e->filter.kept;
  const int some = e->mass.taken > 0;
  weighed_mass *const newest = &e->newest;
  const weighed_mass *old;
  double weighed = 0.0;
  int first, known = e->log_count > 0;
  const int last = (e->log_first + e->log_count - 1) % LOG;
  if (some && known) weighed = t - e->log_t[last];
  e->weighed_for += weighed;
  e->paused += weighed;
  e->changing_for += weighed;
  if (!some && known && kept < e->log_kept[last]) {
    e->weighed_for = 0.0;
    e->unseen_load = 1;
  }
  e->unseen_load = e->unseen_load && e->weighed_for < WEIGHED_FIRST;
  keep_mass(e, newest);
  if (e->log_count == LOG) {
    e->log_first = (e->log_first + 1) % LOG;
    --e->log_count;
  }
  first = (e->log_first + e->log_count++) % LOG;
  e->log_t[first] = t;
  e->log_kept[first] = kept;
  e->log[first] = *newest;
  while (t - e->log_t[e->log_first] > LOOK_BACK) {
    e->log_first = (e->log_first + 1) % LOG;
    --e->log_count;
  }
  old = e->log + e->log_first;
  {
    const double begin = e->log_t[e->log_first], most = e->log_kept[e->log_first];
    if (!e->mass_found) {
      e->mass_found = agree(e, newest, old, AGREES * old->noise, AGREES) && t - begin > LOOK_BACK / 2.0 &&
                      e->weighed_for >= WEIGHED_FIRST;
    } else if (!e->changing) {
      const int lost = most - kept > FORGOTTEN_MUCH &&
                       newest->noise > (LEAST_NOISE > LOST * old->noise ? LEAST_NOISE : LOST * old->noise);
      const int known_before = old->mass - old->mass == R(0.0), known_now = newest->mass - newest->mass == R(0.0);
      e->changing = most - kept > FORGOTTEN_ALL || (lost && !quiet(e, newest, old, AGREES, UNSURE_MASS)) ||
                    (known_before && !known_now);
      if (most - kept > FORGOTTEN_ALL) {
        e->log_first = first;
        e->log_count = 1;
      }
      e->after_pause = e->paused <= LOOK_BACK;
      e->changing_for = weighed;
    } else if (t - begin > LOOK_BACK / 2.0 && !e->unseen_load &&
               quiet(e, newest, old, CALM, e->changing_for < PATIENT ? KNOWN_MASS : ROUGHLY)) {
      e->changing = 0;
    }
  }
}

/* Whether no mass within the limits explains it. */
static int beyond(const mass_result *m) {
  const real room = BEYOND * m->half,
             own = BEYOND * (NORMAL * F(sqrt)(m->noise * m->noise + (real)dot(m->slopes, m->slopes, K)));
  return m->mass < LIGHTEST - room || m->mass > HEAVIEST + room || m->weighed < LIGHTEST - own ||
         m->weighed > HEAVIEST + own;
}

static void say(@name@_output *out, int status, unsigned faults) {
  out->status = status;
  out->faults = faults;
}

/* Status of a mass that a state has just given. */
static void verdict(const estimator *e, @name@_output *out) {
  static const int STATUS[] = {@NAME@_UPDATING, @NAME@_OUTSIDE_STROKE, @NAME@_NOT_OBSERVABLE, @NAME@_TOO_SLOW,
                               @NAME@_ACCELERATING};
  const mass_result *const m = &e->mass;
  const int just_begun = e->changing && e->changing_for <= SETTLES;
  if (!e->mass_found && !isnan(m->mass)) say(out, @NAME@_CHANGING, @NAME@_FAULT_FIRST_MASS);
  else if (e->unseen_load && e->changing) say(out, @NAME@_CHANGING, @NAME@_FAULT_UNSEEN);
  else if (beyond(m) && !just_begun) say(out, @NAME@_IMPLAUSIBLE, @NAME@_FAULT_LIMITS);
  else if (m->contradiction) say(out, @NAME@_IMPLAUSIBLE, @NAME@_FAULT_CONTRADICTION);
  else if (e->changing && e->after_pause) say(out, @NAME@_NO_DATA, @NAME@_FAULT_PAUSED);
  else if ((e->changing && (e->changing_for != 0.0 || beyond(m))) || m->settling)
    say(out, @NAME@_CHANGING, @NAME@_FAULT_LOAD_CHANGES);
  else if (m->surprise) say(out, @NAME@_CHANGING, @NAME@_FAULT_SURPRISE);
  else say(out, !m->gate && !m->taken ? @NAME@_TOO_SLOW : STATUS[m->gate], 0u);
}

/* Whether a mass wanders by more than it says while no load changes. */
static int wanders(estimator *e, int counts, int over) {
  e->drift_settling -= TICK_S * counts;
  if (over || e->drift_settling > 0.0) {
    e->drift_count = e->drifts = 0;
    e->drift_since = (double)INFINITY;
  }
  e->drift_since += TICK_S * counts;
  if (counts && e->drift_since >= EVERY) {
    const weighed_mass *const old = e->drift;
    real off, spread, room;
    e->drift_since = 0.0;
    if (e->drift_count == DRIFT) {
      memmove(e->drift, e->drift + 1, (DRIFT - 1) * sizeof e->drift[0]);
      --e->drift_count;
    }
    e->drift[e->drift_count++] = e->newest;
    off = apart(e, &e->newest, old, &spread);
    if (off != R(0.0)) e->direction = off < R(0.0) ? -1 : 1;
    room = F(hypot)(F(hypot)(e->newest.noise, old->noise), spread) * WANDERS;
    room = F(fmax)(room, FAR * e->mass.half);
    e->drifts = e->drift_count >= FEWEST && F(fabs)(off) > room;
  }
  return e->drifts;
}

/* Whether a mass that changes goes one way. */
static int one_way(estimator *e) {
  const real mass = e->mass.mass;
  if (!e->changing) {
    e->way_low = (real)INFINITY;
    e->way_high = -(real)INFINITY;
  }
  if (mass - mass == R(0.0)) {
    e->way_low = F(fmin)(e->way_low, mass);
    e->way_high = F(fmax)(e->way_high, mass);
  }
  if (!e->changing) return 0;
  {
    const real low = mass - e->way_low, high = e->way_high - mass;
    return !((high < low ? high : low) > e->mass.half);
  }
}

/* Trust in the mass: lost by what speaks against it, back after motion without that. */
static void trust(estimator *e, int implausible, int alarm, int contact, int refused, int wandering, int blind,
                  int way) {
  const double motion = e->mass.taken > 0 ? TICK_S : 0.0;
  const int soiled = e->free_for <= AFTER_CONTACT;
  int soil;
  e->free_for = contact ? 0.0 : e->free_for + TICK_S;
  soil = implausible && e->free_for <= AFTER_CONTACT;
  implausible = (implausible && !soil) || refused;
  wandering = wandering && !soiled;
  if (!alarm) e->changes = fmax(0.0, e->changes - LEAK * motion);
  else if (!way) e->changes = fmin(e->changes + motion, LASTING);
  if (!(alarm || blind || wandering)) {
    e->doubt = fmax(0.0, e->doubt - ALARM_FADES * motion);
    e->alarm_ago += motion;
  } else {
    if (!e->alarmed) {
      const int same = e->direction && e->direction == e->alarm_direction && e->alarm_ago <= ONE_CHANGE;
      e->doubt += !(soiled || same);
      e->alarm_direction = e->direction;
    }
    e->alarm_ago = 0.0;
    e->doubt = fmin(e->doubt + WANDERING * motion * wandering, 2.0 * ALARMS);
  }
  if (blind) e->doubt = 2.0 * ALARMS;
  if (implausible || (alarm && e->changes >= LASTING) || ((alarm || wandering || blind) && e->doubt > ALARMS)) {
    if (!e->distrusted || e->calm_for > RECOVERED)
      e->wanted = e->calm_for > PROBATION ? TRUST_FIRST : fmin(2.0 * e->wanted, TRUST_LONGEST);
    e->distrusted = 1;
    e->calm_for = 0.0;
  } else if ((alarm || soil) && e->distrusted) {
    e->calm_for = 0.0;
  } else {
    e->calm_for += motion;
    e->distrusted = e->distrusted && e->calm_for < e->wanted;
  }
  e->alarmed = alarm || blind || implausible || soil || wandering;
}

static void monitor_begin(estimator *e) {
  e->now = 0.0;
  e->doubted_at = -RETURN_NS;
  e->log_count = e->log_first = 0;
  e->weighed_for = e->changing_for = 0.0;
  e->paused = (double)INFINITY;
  e->mass_found = e->unseen_load = e->changing = e->after_pause = e->doubted = 0;
  e->drift_count = e->drifts = e->direction = 0;
  e->drift_since = (double)INFINITY;
  e->drift_settling = DRIFT_SETTLES;
  e->way_low = (real)INFINITY;
  e->way_high = -(real)INFINITY;
  e->wanted = TRUST_FIRST;
  e->calm_for = e->free_for = e->alarm_ago = (double)INFINITY;
  e->changes = 0.0;
  e->doubt = AT_START;
  e->distrusted = e->alarmed = e->alarm_direction = 0;
  ways_reset(e);
}

/* The state has started again after a pause of all sensors, or because it was lost. */
static void pause_mass(estimator *e) {
  const double pause = e->now > 0.0 && e->paused_for <= LONGEST_PAUSE ? e->paused_for : 0.0;
  e->now += 1e9 * pause;
  if (pause > 0.0) e->paused = 0.0;
  restart_mass(e, pause);
}

static void doubt_state(estimator *e) {
  e->doubted_at = e->now;
  e->doubted = 1;
}

/* Whether a state may be weighed; if not, status and faults say why. */
static int may_weigh(estimator *e, const @name@_input *in, int restart, @name@_output *out) {
  e->doubted = 0;
  watch_signals(e, in->sample);
  if (out->observer != @NAME@_OK || restart || e->outside || e->mass.zeros) interrupt(e);
  else weigh_both_ways(e, in->sample);
  if (out->observer != @NAME@_OK) {
    if (out->state_faults == @NAME@_FAULT_MISSING) e->paused = 0.0;
    if (out->state_faults & DOUBTS) doubt_state(e);
    say(out, @NAME@_NO_DATA, out->state_faults);
    return 0;
  }
  if (e->outside || e->touches) {
    doubt_state(e);
    say(out, @NAME@_CONTACT, @NAME@_FAULT_OUTSIDE_FORCE);
    return 0;
  }
  if (e->now - e->doubted_at < RETURN_NS) {
    say(out, @NAME@_NO_DATA, @NAME@_FAULT_DOUBTED);
    return 0;
  }
  return 1;
}

/* Status and faults of the mass after a state; held: they say already why it is not of this one. */
static void judge_mass(estimator *e, @name@_output *out, int held) {
  int contact, implausible, updating, doubted, missing, alarm, refused, wandering;
  watch_load(e);
  if (!held) verdict(e, out);
  contact = out->status == @NAME@_CONTACT;
  implausible = out->status == @NAME@_IMPLAUSIBLE || e->exchanged;
  updating = out->status == @NAME@_UPDATING;
  doubted = e->doubted_at == e->now;
  missing = (out->observer != @NAME@_OK && !doubted) ||
            (out->status == @NAME@_NO_DATA && e->changing && e->after_pause);
  alarm = (contact || e->changing || out->status == @NAME@_CHANGING || out->status == @NAME@_NO_DATA) &&
          !(missing || e->unseen_load || (e->mass.settling && !e->changing));
  refused = out->observer != @NAME@_OK && (out->state_faults & @NAME@_FAULT_REJECTED);
  wandering = wanders(e, updating && e->mass.taken > 0, alarm || implausible || e->paused <= SETTLES);
  trust(e, implausible, alarm && e->mass_found, contact, refused, wandering, doubted && !e->mass_found, one_way(e));
  if (updating && e->distrusted) say(out, @NAME@_IMPLAUSIBLE, @NAME@_FAULT_NOT_TRUSTED);
  updating = out->status == @NAME@_UPDATING;
  e->exchanged = (e->ways_found || one_signal(e)) && (updating || out->status == @NAME@_IMPLAUSIBLE);
  if (e->exchanged)
    say(out, @NAME@_IMPLAUSIBLE, @NAME@_FAULT_EXCHANGED);
  else if (updating && e->ways_open) say(out, @NAME@_NO_DATA, @NAME@_FAULT_NOT_TRUSTED);
  if (out->status == @NAME@_UPDATING && R(2.0) * e->mass.half > WIDEST)
    say(out, @NAME@_NOT_OBSERVABLE, @NAME@_FAULT_VAGUE);
  else if (out->status == @NAME@_UPDATING && e->mass.zeros) say(out, @NAME@_UPDATING, @NAME@_FAULT_CONTRADICTION);
}

'''
