/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of topics to ticks of the estimator, in a thread that Python has no part in. Behind messages.c in one source:
 * see library.py, and estimator_node.py for what the rules are. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { WAITING = 1024, AGES = 4096, LOOK_MS = 100, AGAIN_MS = 10, PATIENCE_MS = 5000 };
enum { N_PUBLISHED = 1, N_ABSENT, N_OFF_RATE, N_BACKWARD, N_UNREADABLE, N_TOO_MANY, N_INFINITE, N_LATE_COMMAND,
       N_BETWEEN, N_BUSY, N_CLOCK_BACK, COUNTS };

/* What Python looks at. */
typedef struct {
  int64_t stamp;
  uint64_t count[COUNTS], missing[TOPICS];
  uint64_t waiting;     /* bits of topics without which nothing begins */
  uint64_t silent;      /* bits of topics that are given up until they send again */
  double mass, lower, upper, mean_nis;
  int32_t observer, status, ages;
  uint32_t state_faults, faults;
  float age[AGES];      /* s, of the results since the last look */
  char state_reason[LONGEST_REASON], reason[LONGEST_REASON];
} mbse_look;

typedef struct {
  int64_t stamp;
  uint64_t topics;
  double sample[CHANNELS + 1];
} instant;

typedef struct {
  int64_t stamp;
  double value[COMMANDS + 1];
} ordered;

/* A subscription, and how many messages are said to wait there. */
typedef struct {
  struct mbse_loop_memory *loop;
  int64_t arrived;
} source;

typedef struct mbse_loop_memory {
  machine_estimator estimator;
  source from[TOPICS];
  mbse_ros_calls ros;
  const void *subscription[TOPICS], *state, *payload;
  ros_bytes in, out;
  instant waiting[WAITING];
  ordered command[WAITING];
  int first, count, first_command, commands, descriptor;
  int64_t newest[TOPICS], suspect[TOPICS], last, command_step, last_tick;
  double held[COMMANDS + 1];
  uint32_t sequence;
  uint64_t silent;
  int stop, reset, wanted, pending;         /* of several threads: by atomic operations alone */
  pthread_t thread;
  mbse_look found, shown;
} mbse_loop;

static instant *waits(mbse_loop *l, int k) { return l->waiting + (l->first + k) % WAITING; }

static void on_message(const void *user, size_t count) {
  source *const from = (source *)(uintptr_t)user;
  mbse_loop *const l = from->loop;
  const uint64_t one = 1;
  (void)__atomic_fetch_add(&from->arrived, (int64_t)count, __ATOMIC_ACQ_REL);
  if (!__atomic_exchange_n(&l->pending, 1, __ATOMIC_ACQ_REL)) (void)!write(l->descriptor, &one, sizeof one);
}

/* Publish bytes; again for a while where the middleware is busy. */
static void publish(mbse_loop *l, const void *publisher, size_t length) {
  const struct timespec pause = {0, AGAIN_MS * 1000000L};
  int tries;
  l->out.length = length;
  for (tries = 0; l->ros.publish(publisher, &l->out, NULL); ++tries) {
    ++l->found.count[N_BUSY];
    l->ros.reset_error();
    if (tries * AGAIN_MS >= PATIENCE_MS || __atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) return;
    (void)nanosleep(&pause, NULL);
  }
}

static void forget_all(mbse_loop *l) {
  int j;
  machine_init(&l->estimator);
  l->last = INT64_MIN;
  l->count = l->commands = 0;
  l->silent = 0;
  l->command_step = 0;
  for (j = 0; j < TOPICS; ++j) l->newest[j] = l->suspect[j] = INT64_MIN;
  for (j = 0; j < COMMANDS; ++j) l->held[j] = NAN;
}

static void remember_age(mbse_loop *l, int64_t stamp) {
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  if (l->found.ages < AGES)
    l->found.age[l->found.ages++] = (float)(1e-9 * (double)(now.tv_sec * SECOND + now.tv_nsec - stamp));
}

/* One tick: the samples of an instant. */
static void tick(mbse_loop *l, const instant *now) {
  machine_estimator *const e = &l->estimator;
  mbse_look *const f = &l->found;
  machine_input in;
  machine_output out;
  const int restart = !e->started;
  double before[CHANNELS + 1];
  int j;
  if (l->last != INT64_MIN) {
    const int64_t since = now->stamp - l->last, ticks = (since + PERIOD / 2) / PERIOD, off = since - ticks * PERIOD;
    if (ticks < 1 || off > TOLERANCE || off < -TOLERANCE) {
      ++f->count[N_OFF_RATE];
      return;
    }
    if (ticks > 1) {
      f->count[N_ABSENT] += (uint64_t)(ticks - 1);
      machine_pause(e, 1e-9 * (double)since);
    }
  }
  l->last = now->stamp;
  memcpy(in.sample, now->sample, CHANNELS * sizeof(double));
  for (j = 0; j < COMMANDS; ++j) in.command[j] = l->held[j];
  memcpy(before, e->last_sample, CHANNELS * sizeof(double));
  machine_step(e, &in, &out);
  if (out.reasons & MACHINE_FIRST_SAMPLES) return;
  ++l->sequence;
  explain(out.state_faults, out.channel, f->state_reason);
  explain_mass(&out, f->state_reason, f->reason);
  publish(l, l->state, write_state(l->out.buffer, e, &in, &out, now->stamp, l->sequence, restart, before,
                                   f->state_reason));
  publish(l, l->payload, write_payload(l->out.buffer, e, &out, now->stamp, l->sequence, f->reason));
  remember_age(l, now->stamp);
  ++f->count[N_PUBLISHED];
  f->stamp = now->stamp;
  f->mass = out.held_mass;
  f->lower = out.held_lower;
  f->upper = out.held_upper;
  f->mean_nis = out.mean_nis;
  f->observer = out.observer;
  f->status = STATUS_OF[out.status];
  f->state_faults = out.state_faults;
  f->faults = out.faults;
}

/* The commands in force at a stamp; 0 while there is none. */
static int command_at(mbse_loop *l, int64_t stamp) {
  int j;
  while (l->commands && l->command[l->first_command].stamp <= stamp) {
    const ordered *const c = l->command + l->first_command;
    for (j = 0; j < COMMANDS; ++j)
      if (!isnan(c->value[j])) l->held[j] = c->value[j];
    if (c->stamp != stamp && l->last != INT64_MIN && (stamp - c->stamp) % PERIOD) ++l->found.count[N_BETWEEN];
    l->first_command = (l->first_command + 1) % WAITING;
    --l->commands;
  }
  for (j = 0; j < COMMANDS; ++j)
    if (isnan(l->held[j])) return 0;
  return 1;
}

/* Whether the oldest instant waits for nothing more. */
static int ready(mbse_loop *l) {
  const instant *const i = waits(l, 0);
  int64_t ahead = INT64_MIN;
  int t;
  for (t = 0; t < TOPICS; ++t) {
    if (l->newest[t] == INT64_MIN) return 0;
    if (t != COMMAND_TOPIC && l->newest[t] > ahead) ahead = l->newest[t];
  }
  for (t = 0; t < TOPICS; ++t) {
    if (t == COMMAND_TOPIC || i->topics >> t & 1 || l->newest[t] > i->stamp) continue;
    if (ahead - l->newest[t] < GIVE_UP) return 0;
    l->silent |= (uint64_t)1 << t;
  }
  if (COMMAND_TOPIC < 0 || l->newest[COMMAND_TOPIC] >= i->stamp) return 1;
  if (l->command_step > PERIOD + PERIOD / 2) return 1;      /* rarer than the sensors: held without waiting */
  if (ahead - i->stamp < COMMAND_WAIT) return 0;
  ++l->found.count[N_LATE_COMMAND];
  return 1;
}

static void work(mbse_loop *l) {
  while (l->count && ready(l)) {
    const instant now = *waits(l, 0);
    int t;
    l->first = (l->first + 1) % WAITING;
    --l->count;
    for (t = 0; t < TOPICS; ++t)
      if (t != COMMAND_TOPIC && !(now.topics >> t & 1)) ++l->found.missing[t];
    if (command_at(l, now.stamp)) tick(l, &now);
  }
}

/* Place of the instant of a stamp among those that wait, made where it is not there. */
static instant *instant_at(mbse_loop *l, int64_t stamp) {
  int k = l->count, i, j;
  while (k && waits(l, k - 1)->stamp >= stamp) --k;
  if (k < l->count && waits(l, k)->stamp == stamp) return waits(l, k);
  if (l->count == WAITING) {
    ++l->found.count[N_TOO_MANY];
    l->first = (l->first + 1) % WAITING;
    --l->count;
    k = k ? k - 1 : 0;
  }
  for (i = l->count++; i > k; --i) *waits(l, i) = *waits(l, i - 1);
  waits(l, k)->stamp = stamp;
  waits(l, k)->topics = 0;
  for (j = 0; j < CHANNELS; ++j) waits(l, k)->sample[j] = NAN;
  return waits(l, k);
}

/* Whether a stamp comes after that of the message before. Two in sequence far back: the clock went back. */
static int in_order(mbse_loop *l, int topic, int64_t stamp) {
  const int64_t newest = l->newest[topic], before = l->suspect[topic];
  if (newest == INT64_MIN || stamp > newest) {
    l->suspect[topic] = INT64_MIN;
    return 1;
  }
  ++l->found.count[N_BACKWARD];
  l->suspect[topic] = newest - stamp > FAR_BACK ? stamp : INT64_MIN;
  if (l->suspect[topic] == INT64_MIN || before == INT64_MIN || stamp <= before) return 0;
  ++l->found.count[N_CLOCK_BACK];
  forget_all(l);
  return 1;
}

static void take_command(mbse_loop *l, int64_t stamp, const double *values) {
  ordered *c;
  int j;
  if (l->newest[COMMAND_TOPIC] != INT64_MIN) l->command_step = stamp - l->newest[COMMAND_TOPIC];
  if (l->commands == WAITING) {
    ++l->found.count[N_TOO_MANY];
    l->first_command = (l->first_command + 1) % WAITING;
    --l->commands;
  }
  c = l->command + (l->first_command + l->commands++) % WAITING;
  c->stamp = stamp;
  for (j = 0; j < COMMANDS; ++j) c->value[j] = NAN;
  for (j = FIRST_ENTRY[COMMAND_TOPIC]; j < FIRST_ENTRY[COMMAND_TOPIC + 1]; ++j) {
    if (fabs(values[j]) < LARGEST_VALUE) c->value[ENTRIES[j].place] = values[j];
    else ++l->found.count[N_INFINITE];
  }
}

/* One message. */
static void handle(mbse_loop *l, int topic, const uint8_t *data, size_t length) {
  double values[FIRST_ENTRY_END + 1];
  int64_t stamp;
  int k;
  if (!read_message(topic, data, length, &stamp, values)) {
    ++l->found.count[N_UNREADABLE];
    return;
  }
  if (!in_order(l, topic, stamp)) return;
  if (topic == COMMAND_TOPIC) {
    take_command(l, stamp, values);
  } else if (l->last != INT64_MIN && stamp <= l->last) {
    ++l->found.count[N_BACKWARD];     /* its tick was without it */
  } else {
    instant *const i = instant_at(l, stamp);
    i->topics |= (uint64_t)1 << topic;
    for (k = FIRST_ENTRY[topic]; k < FIRST_ENTRY[topic + 1]; ++k) {
      if (!isnan(values[k]) && !(fabs(values[k]) < LARGEST_VALUE)) ++l->found.count[N_INFINITE];
      else i->sample[ENTRIES[k].place] = values[k];
    }
  }
  l->newest[topic] = stamp;
  l->silent &= ~((uint64_t)1 << topic);
  work(l);
}

/* What Python asked for. */
static void answer(mbse_loop *l) {
  int t;
  if (__atomic_exchange_n(&l->reset, 0, __ATOMIC_ACQ_REL)) forget_all(l);
  if (!__atomic_load_n(&l->wanted, __ATOMIC_ACQUIRE)) return;
  l->found.waiting = 0;
  l->found.silent = l->silent;
  for (t = 0; t < TOPICS; ++t)
    if (l->newest[t] == INT64_MIN) l->found.waiting |= (uint64_t)1 << t;
  l->shown = l->found;
  l->found.ages = 0;
  __atomic_store_n(&l->wanted, 0, __ATOMIC_RELEASE);
}

/* All messages that are said to wait, or all that do, one of each topic in turn: a look in vain costs as much as a
   message. */
static void drain(mbse_loop *l, int all) {
  int some = 1, t;
  while (some) {
    some = 0;
    for (t = 0; t < TOPICS; ++t) {
      const int64_t said = __atomic_load_n(&l->from[t].arrived, __ATOMIC_ACQUIRE);
      if (!all && said <= 0) continue;
      if (l->ros.take(l->subscription[t], &l->in, NULL, NULL)) {
        (void)__atomic_fetch_sub(&l->from[t].arrived, said, __ATOMIC_ACQ_REL);
        continue;
      }
      if (said > 0) (void)__atomic_fetch_sub(&l->from[t].arrived, 1, __ATOMIC_ACQ_REL);
      some = 1;
      handle(l, t, l->in.buffer, l->in.length);
    }
    answer(l);
  }
}

static void *serve(void *argument) {
  mbse_loop *const l = argument;
  struct pollfd ready_to_read = {l->descriptor, POLLIN, 0};
  uint64_t ignored;
  while (!__atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) {
    const int called = poll(&ready_to_read, 1, LOOK_MS) > 0;
    if (called) (void)!read(l->descriptor, &ignored, sizeof ignored);
    __atomic_store_n(&l->pending, 0, __ATOMIC_SEQ_CST);
    drain(l, !called);
  }
  return NULL;
}

static void *allocate(size_t size, void *state) { (void)state; return malloc(size); }
static void deallocate(void *from, void *state) { (void)state; free(from); }
static void *reallocate(void *from, size_t size, void *state) { (void)state; return realloc(from, size); }
static void *zero_allocate(size_t count, size_t size, void *state) { (void)state; return calloc(count, size); }

mbse_loop *mbse_loop_new(const mbse_ros_calls *calls, const void *const *subscriptions, const void *state,
                         const void *payload) {
  const ros_allocator allocator = {allocate, deallocate, reallocate, zero_allocate, NULL};
  mbse_loop *const l = calloc(1, sizeof *l);
  if (!l) return NULL;
  l->ros = *calls;
  memcpy(l->subscription, subscriptions, sizeof l->subscription);
  l->state = state;
  l->payload = payload;
  l->in.allocator = l->out.allocator = allocator;
  l->out.buffer = malloc(LARGEST_MESSAGE);
  l->out.capacity = LARGEST_MESSAGE;
  l->descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  for (int t = 0; t < TOPICS; ++t) l->from[t].loop = l;
  forget_all(l);
  return l;
}

/* Serve until mbse_loop_stop; 0, or what the system said. */
int mbse_loop_start(mbse_loop *l) {
  int t, failed;
  if (l->descriptor < 0 || !l->out.buffer) return ENOMEM;
  __atomic_store_n(&l->stop, 0, __ATOMIC_RELEASE);
  if ((failed = pthread_create(&l->thread, NULL, serve, l))) return failed;
  for (t = 0; t < TOPICS; ++t) (void)l->ros.listen(l->subscription[t], on_message, l->from + t);
  return 0;
}

/* End the thread and take what waits, unless at_once. */
void mbse_loop_stop(mbse_loop *l, int at_once) {
  int t;
  for (t = 0; t < TOPICS; ++t) (void)l->ros.listen(l->subscription[t], NULL, NULL);
  __atomic_store_n(&l->stop, 1, __ATOMIC_RELEASE);
  (void)pthread_join(l->thread, NULL);
  if (!at_once) drain(l, 1);
}

void mbse_loop_free(mbse_loop *l) {
  if (l->descriptor >= 0) (void)close(l->descriptor);
  free(l->in.buffer);
  free(l->out.buffer);
  free(l);
}

/* Without the thread: one message. */
void mbse_loop_take(mbse_loop *l, int topic, const uint8_t *data, size_t length) {
  handle(l, topic, data, length);
  answer(l);
}

void mbse_loop_reset(mbse_loop *l) { __atomic_store_n(&l->reset, 1, __ATOMIC_RELEASE); }

/* Ask for numbers; NULL until they have come, a moment later. */
const mbse_look *mbse_loop_look(mbse_loop *l) {
  if (__atomic_load_n(&l->wanted, __ATOMIC_ACQUIRE)) return NULL;
  return &l->shown;
}

void mbse_loop_want(mbse_loop *l) { __atomic_store_n(&l->wanted, 1, __ATOMIC_RELEASE); }
