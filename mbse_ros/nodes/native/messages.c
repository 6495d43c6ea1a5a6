/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of ROS 2 as CDR bytes: sensors read, states and payloads written. Behind the estimator's code in one source:
 * see library.py. Little-endian, as every computer of today sends; another message counts as unreadable. */

/* ---- rcl, without its headers ---- */
/* As rcutils_allocator_t and rcutils_uint8_array_t (rcutils/allocator.h, types/uint8_array.h), Humble to Kilted. */
typedef struct {
  void *(*allocate)(size_t, void *);
  void (*deallocate)(void *, void *);
  void *(*reallocate)(void *, size_t, void *);
  void *(*zero_allocate)(size_t, size_t, void *);
  void *state;
} ros_allocator;
typedef struct {
  uint8_t *buffer;
  size_t length, capacity;
  ros_allocator allocator;
} ros_bytes;

/* rcl_take_serialized_message, rcl_publish_serialized_message, rcl_subscription_set_on_new_message_callback,
 * rcutils_reset_error; a test gives others. */
typedef struct {
  int (*take)(const void *subscription, ros_bytes *message, void *info, void *allocation);
  int (*publish)(const void *publisher, const ros_bytes *message, void *allocation);
  int (*listen)(const void *subscription, void (*callback)(const void *, size_t), const void *user);
  void (*reset_error)(void);
} mbse_ros_calls;

/* ---- reading: a cursor that refuses to leave the message ---- */
typedef struct {
  const uint8_t *data;
  size_t length, at;
  int bad;
} reader;

static const uint8_t *take_bytes(reader *r, size_t count, size_t alignment) {
  const size_t from = 4 + (r->at - 4 + alignment - 1) / alignment * alignment;
  if (r->bad || from > r->length || count > r->length - from) {
    r->bad = 1;
    return NULL;
  }
  r->at = from + count;
  return r->data + from;
}

static uint32_t take_u32(reader *r) {
  const uint8_t *const from = take_bytes(r, 4, 4);
  uint32_t value = 0;
  if (from) memcpy(&value, from, 4);
  return value;
}

static double take_f64(reader *r) {
  const uint8_t *const from = take_bytes(r, 8, 8);
  double value = NAN;
  if (from) memcpy(&value, from, 8);
  return value;
}

/* Text, which ends with a zero in the message; its length without it. */
static const char *take_text(reader *r, uint32_t *length) {
  const uint32_t count = take_u32(r);
  const uint8_t *const from = take_bytes(r, count, 1);
  *length = count && from && !from[count - 1] ? count - 1 : count;
  return (const char *)from;
}

static int begins(reader *r, const uint8_t *data, size_t length, int64_t *stamp) {
  uint32_t seconds, nanoseconds, ignored;
  r->data = data;
  r->length = length;
  r->at = 4;
  r->bad = length < 4 || data[0] != 0 || data[1] != 1;
  seconds = take_u32(r);
  nanoseconds = take_u32(r);
  (void)take_text(r, &ignored);
  *stamp = (int64_t)(int32_t)seconds * SECOND + nanoseconds;
  return !r->bad && nanoseconds < SECOND;
}

/* Values of a topic's message by the entries of the topic, NAN where it has none; 0: unreadable. */
static int read_joints(reader *r, int topic, double *values) {
  const uint8_t *fields[3] = {NULL, NULL, NULL};
  const uint32_t names = take_u32(r);
  const size_t begin = r->at;
  uint32_t counts[3], length, i;
  int k;
  for (i = 0; i < names && !r->bad; ++i) (void)take_text(r, &length);
  for (k = 0; k < 3; ++k) {
    counts[k] = take_u32(r);
    if (counts[k]) fields[k] = take_bytes(r, (size_t)counts[k] * 8, 8);
  }
  if (r->bad) return 0;
  r->at = begin;
  for (i = 0; i < names; ++i) {
    const char *const name = take_text(r, &length);
    for (k = FIRST_ENTRY[topic]; k < FIRST_ENTRY[topic + 1]; ++k) {
      const int field = ENTRIES[k].field;
      if (strlen(ENTRIES[k].name) != length || memcmp(ENTRIES[k].name, name, length)) continue;
      if (counts[field] == names) memcpy(values + k, fields[field] + 8 * (size_t)i, 8);
    }
  }
  return 1;
}

static int read_pressure(reader *r, int topic, double *values) {
  values[FIRST_ENTRY[topic]] = take_f64(r);
  return !r->bad;
}

/* Angular velocity is field 0 to 2, linear acceleration 3 to 5; a covariance that begins with -1: not there. */
static int read_imu(reader *r, int topic, double *values) {
  double found[6], covariance;
  int k;
  for (k = 0; k < 13; ++k) (void)take_f64(r);
  for (k = 0; k < 24; ++k) {
    const double value = take_f64(r);
    if (k % 12 < 3) found[k / 12 * 3 + k % 12] = value;
    if (k % 12 != 3) continue;
    covariance = value;
    if (covariance == -1.0) found[k / 12 * 3] = found[k / 12 * 3 + 1] = found[k / 12 * 3 + 2] = NAN;
  }
  if (r->bad) return 0;
  for (k = FIRST_ENTRY[topic]; k < FIRST_ENTRY[topic + 1]; ++k) values[k] = found[ENTRIES[k].field];
  return 1;
}

static int read_message(int topic, const uint8_t *data, size_t length, int64_t *stamp, double *values) {
  reader r;
  int k;
  for (k = FIRST_ENTRY[topic]; k < FIRST_ENTRY[topic + 1]; ++k) values[k] = NAN;
  if (!begins(&r, data, length, stamp)) return 0;
  return KIND[topic] == JOINTS ? read_joints(&r, topic, values)
         : KIND[topic] == IMU ? read_imu(&r, topic, values) : read_pressure(&r, topic, values);
}

/* ---- writing: into a buffer that is large enough for any message of this machine ---- */
typedef struct {
  uint8_t *data;
  size_t at;
} writer;

static void put(writer *w, const void *from, size_t count, size_t alignment) {
  while ((w->at - 4) % alignment) w->data[w->at++] = 0;
  memcpy(w->data + w->at, from, count);
  w->at += count;
}

static void put_u32(writer *w, uint32_t value) { put(w, &value, 4, 4); }
static void put_f64(writer *w, double value) { put(w, &value, 8, 8); }
static void put_u8(writer *w, uint8_t value) { put(w, &value, 1, 1); }

static void put_text(writer *w, const char *text) {
  const size_t length = strlen(text) + 1;
  put_u32(w, (uint32_t)length);
  put(w, text, length, 1);
}

static void put_names(writer *w, const char *const *names, int count) {
  int i;
  put_u32(w, (uint32_t)count);
  for (i = 0; i < count; ++i) put_text(w, names[i]);
}

static void put_numbers(writer *w, const double *values, int count) {
  int i;
  put_u32(w, (uint32_t)count);
  for (i = 0; i < count; ++i) put_f64(w, values[i]);
}

static void put_head(writer *w, int64_t stamp, uint32_t sequence) {
  static const uint8_t ENCODING[4] = {0, 1, 0, 0};
  const int64_t seconds = stamp >= 0 ? stamp / SECOND : -((-stamp + SECOND - 1) / SECOND);
  w->at = 0;
  memcpy(w->data, ENCODING, 4);
  w->at = 4;
  put_u32(w, (uint32_t)(int32_t)seconds);
  put_u32(w, (uint32_t)(stamp - seconds * SECOND));
  put_text(w, MACHINE_MACHINE);
  put_text(w, MACHINE_FINGERPRINT);
  put_u32(w, sequence);
}

/* ---- why, in words ---- */
static void add_words(char *text, const char *more) {
  const size_t length = strlen(text), room = LONGEST_REASON - 1 - length;
  strncat(text, more, room);
}

/* Bits of a channel and of the faults that they are. */
static const unsigned CHANNEL_BITS[7][2] = {
  {MACHINE_MISSING, MACHINE_FAULT_MISSING}, {MACHINE_CONSTANT, MACHINE_FAULT_STUCK},
  {MACHINE_REJECTED, MACHINE_FAULT_REJECTED}, {MACHINE_JUMPED, MACHINE_FAULT_JUMPED},
  {MACHINE_BELOW_VACUUM, MACHINE_FAULT_VACUUM}, {MACHINE_AT_END_OF_RANGE, MACHINE_FAULT_SATURATED},
  {MACHINE_FAR_AWAY, MACHINE_FAULT_FAR}};

static void explain(unsigned faults, const unsigned *channels, char *text) {
  int bit, k, j;
  text[0] = 0;
  for (bit = 0; bit < 32; ++bit) {
    const unsigned fault = 1u << bit;
    const char *before = ": ";
    if (!(faults & fault)) continue;
    if (text[0]) add_words(text, "; ");
    add_words(text, FAULT_WORDS[bit]);
    for (k = 0; channels && k < 7; ++k) {
      if (CHANNEL_BITS[k][1] != fault) continue;
      for (j = 0; j < MACHINE_CHANNELS; ++j) {
        if (!(channels[j] & CHANNEL_BITS[k][0])) continue;
        add_words(text, before);
        add_words(text, machine_channel_names[j]);
        before = ", ";
      }
    }
  }
}

/* Why a mass is held, as streams/mass_monitor.py says it. */
static void explain_mass(const machine_output *out, const char *of_state, char *text) {
  explain(out->faults, NULL, text);
  if (out->status == MACHINE_NO_DATA && out->observer != MACHINE_OK && out->faults == out->state_faults) {
    text[0] = 0;
    add_words(text, OBSERVER_WORDS[out->observer]);
    add_words(text, of_state);
  } else if (!text[0]) {
    add_words(text, STATUS_WORDS[out->status]);
  }
}

/* HydraulicState with the state at the stamp alone: one step, as long as a tick. */
static size_t write_state(uint8_t *data, const machine_estimator *e, const machine_input *in,
                          const machine_output *out, int64_t stamp, uint32_t sequence, int restart,
                          const double *before, const char *reason) {
  double column[CHANNELS + 1], nis = 0.0;
  writer w = {data, 0};
  int i, j, used = 0;
  put_head(&w, stamp, sequence);
  put_u32(&w, (uint32_t)PERIOD);
  put_u32(&w, 1);
  put_u8(&w, (uint8_t)restart);
  put_names(&w, machine_state_names, NX);
  put_numbers(&w, out->state, NX);
  put_u32(&w, NX * NX);
  for (i = 0; i < NX; ++i)
    for (j = 0; j < NX; ++j) put_f64(&w, covariance(e, i, j));
  put_names(&w, machine_channel_names, CHANNELS);
  /* as between two samples, of which one is missing */
  for (j = 0; j < CHANNELS; ++j) column[j] = isnan(before[j]) ? NAN : in->sample[j];
  put_numbers(&w, column, CHANNELS);
  for (j = 0; j < CHANNELS; ++j) {
    column[j] = isnan(column[j]) ? NAN : e->innovation[j];
    if (isnan(e->innovation[j]) || e->rejected[j]) continue;
    nis += e->innovation[j] * e->innovation[j] / e->variance[j];
    ++used;
  }
  put_numbers(&w, column, CHANNELS);
  for (j = 0; j < CHANNELS; ++j) column[j] = sqrt(e->variance[j]);
  put_numbers(&w, column, CHANNELS);
  put_f64(&w, nis);
  put_u32(&w, (uint32_t)used);
  put_u8(&w, (uint8_t)out->observer);
  put_text(&w, reason);
  put_u32(&w, 0);
  put_u32(&w, out->state_faults);
  return w.at;
}

/* Statuses of PayloadEstimate by those of the estimator. */
static const uint8_t STATUS_OF[11] = {0, 2, 1, 3, 4, 5, 6, 6, 0, 7, 8};

static size_t write_payload(uint8_t *data, const machine_estimator *e, const machine_output *out, int64_t stamp,
                            uint32_t sequence, const char *reason) {
  writer w = {data, 0};
  const filter *const f = &e->filter;
  double known = 0.0, low_passed = NAN;
  int i;
  if (f->known) {
    for (i = 0; i < K && !(e->incredible && !e->broken[e->incredible]); ++i)
      known += f->sums[2 + i] / f->sums[0] * e->common[1 + i];
    low_passed = f->sums[1] / f->sums[0] - known;
  }
  put_head(&w, stamp, sequence);
  put_f64(&w, out->held_mass);
  put_f64(&w, out->held_stddev);
  put_f64(&w, out->held_lower);
  put_f64(&w, out->held_upper);
  put_f64(&w, out->raw);
  put_f64(&w, isnan(out->held_mass) ? NAN : low_passed);
  {
    const uint64_t samples = isnan(out->held_mass) ? 0 : f->samples;
    put(&w, &samples, 8, 8);
  }
  put_u8(&w, STATUS_OF[out->status]);
  put_text(&w, reason);
  put_u32(&w, out->faults);
  return w.at;
}
