# SPDX-License-Identifier: Apache-2.0
"""Text of the header; ``@name@`` is the prefix of functions and types, ``@NAME@`` that of macros. Then the test
program and the pages beside an exported estimator."""

from __future__ import annotations

HEADER = r'''/* SPDX-License-Identifier: Apache-2.0 */
/* Motion and payload of the machine @machine@, once a tick: see README.md.
 *
 * Machine's file: fingerprint @fingerprint@; written by mbse_ros @version@. SI units: m, rad, Pa, V, s, kg.
@aged@ * Weighing @weighing@.
 * Nothing is allocated, nothing calls itself, nothing is static: all memory is in @name@_estimator.
 * Functions may run at the same time on different estimators.
 */
#ifndef @NAME@_H
#define @NAME@_H

#ifdef __cplusplus
extern "C" {
#endif

typedef @real@ @name@_real;

#define @NAME@_MACHINE "@machine@"
#define @NAME@_FINGERPRINT "@fingerprint@" /* of the machine's file: compare with what you meant to load */
#define @NAME@_VERSION "@version@"
#define @NAME@_RATE @rate@ /* Hz, of the ticks: call @name@_step so often */
#define @NAME@_SUBSTEPS @substeps@ /* steps of the observer in a tick */

/* Places in sample[]; a sample that is not there is NAN */
@channel_macros@#define @NAME@_CHANNELS @channels@

/* Places in command[] */
@command_macros@#define @NAME@_COMMANDS @commands@

/* Places in state[] and state_stddev[] */
@state_macros@#define @NAME@_STATES @nx@

/* status: whether the mass is one. mass, lower and upper are numbers only where it is @NAME@_UPDATING */
#define @NAME@_UPDATING 0           /* samples of this tick have gone into the mass */
#define @NAME@_NO_DATA 1            /* the observer is not OK: see observer, reasons, channel */
#define @NAME@_TOO_SLOW 2           /* the pistons rest, or nearly: friction is not known there */
#define @NAME@_NOT_OBSERVABLE 3     /* the mass does not show in the cylinder forces here */
#define @NAME@_OUTSIDE_STROKE 4     /* a piston is at an end of its stroke, or the mechanism out of reach */
#define @NAME@_ACCELERATING 5       /* the machine accelerates too much */
#define @NAME@_IMPLAUSIBLE 6        /* no mass within the payload's limits explains it */
#define @NAME@_CONTRADICTED 7       /* weighing apart: the model is contradicted: mean_nis > @NAME@_LARGEST_NIS */
#define @NAME@_WAITING 8            /* weighing apart: moving, but not yet for the guard time: no sample counts */
#define @NAME@_CHANGING 9           /* weighing joint: the load changes, or is not known yet */
#define @NAME@_CONTACT 10           /* weighing joint: the tool or the load touches something */
/* observer: trust in the state */
#define @NAME@_OK 0
#define @NAME@_STARTING 1           /* settling after a start */
#define @NAME@_COASTING 2           /* a sensor is missing or wrong */
#define @NAME@_LOST 3               /* the state is given up; the next tick starts again */

/* bits of reasons */
#define @NAME@_NOT_FINITE 1u        /* the state left the finite numbers */
#define @NAME@_NOTHING_MEASURED 2u
#define @NAME@_FAR_OUTSIDE 4u       /* a position, speed or pressure far outside its range */
#define @NAME@_HALF_REJECTED 8u     /* half of the channels, or more, contradict the state */
#define @NAME@_DOUBTFUL 16u         /* a channel whose samples are all rejected */
#define @NAME@_FIRST_SAMPLES 32u    /* before the second sample of a start */
#define @NAME@_NOT_KNOWN 64u        /* a position that is not known to a tenth of its range */

/* bits of channel[]: what is wrong with a sample; 0: it was used */
#define @NAME@_MISSING 1u           /* NAN, or the one before was */
#define @NAME@_REJECTED 2u          /* beyond the gate: left out */
#define @NAME@_CONSTANT 4u          /* has not changed though the machine moves: left out */
#define @NAME@_BELOW_VACUUM 8u      /* left out */
#define @NAME@_AT_END_OF_RANGE 16u  /* left out */
#define @NAME@_FAR_AWAY 32u         /* a position, or pressure, that the machine cannot have: left out */
#define @NAME@_JUMPED 64u           /* it steps as no machine does: left out until it is back */

/* bits of faults and state_faults, as Fault.msg has them */
@fault_macros@
#define @NAME@_LARGEST_NIS @R@(@largest_nis@) /* of mean_nis, about 1 where model and sensors are right */

/* What goes in: the samples of one instant, and the valve commands in force from that instant on. Samples are as the
   machine's file has them: positions from its zeros, pressures absolute or gauge. A command is never NAN, which makes
   the state LOST: where none has come repeat the last one. */
typedef struct {
  @name@_real sample[@channels1@]; /* @NAME@_CHANNELS: m or rad, Pa; NAN: missing */
  @name@_real command[@commands1@]; /* @NAME@_COMMANDS: V */
} @name@_input;

typedef struct {
  int status;                    /* of the mass: @NAME@_UPDATING or why it is not */
  int observer;                  /* of the state */
  unsigned reasons;              /* bits: why the observer is not OK */
  @name@_real mass;              /* kg; NAN unless status is @NAME@_UPDATING */
  @name@_real lower, upper;      /* kg, 95 % interval; NAN likewise */
  @name@_real held_mass; /* kg, known last, whatever the status; NAN before the first; while held_for is INFINITY
                                    it has never counted */
  @name@_real held_lower, held_upper; /* kg */
  @name@_real held_stddev;       /* kg, noise and uncertain numbers of the machine's file together */
  @name@_real held_for;          /* s since status was @NAME@_UPDATING last; INFINITY where it never was */
  @name@_real raw;               /* kg, of the last sample alone; NAN where there is none */
  @name@_real mean_nis;          /* innovations squared over their variances, mean of late */
  int taken;                     /* samples of this tick that went into the mass */
  unsigned channel[@channels1@]; /* bits: what is wrong with each sample */
  @name@_real state[@NAME@_STATES], state_stddev[@NAME@_STATES]; /* SI; NAN before the start */
  unsigned faults;               /* bits, weighing joint: why the status of the mass is what it is */
  unsigned state_faults;         /* bits, weighing joint: what is wrong with the state */
} @name@_output;

@memory@
/* Begin with nothing known. Call it once before the first step. */
void @name@_init(@name@_estimator *e);

/* One tick. Missed ticks: call @name@_gap first. */
void @name@_step(@name@_estimator *e, const @name@_input *in, @name@_output *out);

/* Another load: forget the mass, keep the motion. */
void @name@_new_load(@name@_estimator *e);

/* Samples were missing for longer than a tick: the motion starts again from the next two samples. The mass stays;
   weighing joint it counts almost nothing against what is weighed then, as the load may be another one. */
void @name@_gap(@name@_estimator *e);

/* The same where it is known that the next tick is so many seconds after the last one: weighing joint 1/e of what is
   known of the load counts for each @pauses@ s. */
void @name@_pause(@name@_estimator *e, double seconds);

/* Names of the vectors, by their places */
extern const char *const @name@_channel_names[];
extern const char *const @name@_state_names[];

#ifdef __cplusplus
}
#endif
#endif
'''
TEST = r'''/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded ticks through the estimator of @machine@: prints the largest difference to what the Python one gave for
   them; 1 at the end where it is more than @tolerance@ or where a status is another. */
#include "@name@.h"

#include <math.h>
#include <stdio.h>

enum { TICKS = @ticks@, CHANNELS = @channels1@, COMMANDS = @commands1@, G = @g@ };

static const @name@_real samples[TICKS][CHANNELS] = {
@samples@};
static const @name@_real commands[TICKS][COMMANDS] = {
@commands_table@};
/* status of observer and mass, mass, lower, upper, positions */
static const int status[TICKS][2] = {
@status@};
static const @name@_real expected[TICKS][3 + G] = {
@expected@};

static double worst, worst_mass;
static @name@_estimator e;

static void compare(double got, double wanted, double scale, double *most) {
  const double off = fabs(got - wanted) / fmax(fabs(wanted), scale);
  if (isnan(got) && isnan(wanted)) return;
  if (!(off <= *most)) *most = off;
}

int main(void) {
  int k, j, others = 0, updated = 0;
  @name@_init(&e);
  for (k = 0; k < TICKS; ++k) {
    @name@_input in;
    @name@_output out;
    for (j = 0; j < CHANNELS; ++j) in.sample[j] = samples[k][j];
    for (j = 0; j < COMMANDS; ++j) in.command[j] = commands[k][j];
    @name@_step(&e, &in, &out);
    if (out.observer != status[k][0] || out.status != status[k][1]) {
      if (others++ < 10)
        printf("tick %d: observer %d, status %d, expected %d and %d\n", k, out.observer, out.status, status[k][0],
               status[k][1]);
    }
    updated += out.status == @NAME@_UPDATING;
    if ((out.status == @NAME@_UPDATING) != !isnan(out.mass)) ++others;
    compare(out.held_mass, expected[k][0], @range@, &worst_mass);
    compare(out.held_lower, expected[k][1], @range@, &worst_mass);
    compare(out.held_upper, expected[k][2], @range@, &worst_mass);
    for (j = 0; j < G; ++j) compare(out.state[j], expected[k][3 + j], 1e-3, &worst);
  }
  printf("%s: %d ticks, %d with a mass; largest difference of the mass %.3g, of a position %.3g (relative); %d other "
         "statuses; memory %lu bytes\n", worst <= @tolerance@ && worst_mass <= @tolerance@ && !others ? "ok" : "FAILED",
         TICKS, updated, worst_mass, worst, others, (unsigned long)sizeof e);
  return !(worst <= @tolerance@ && worst_mass <= @tolerance@ && !others);
}
'''

CMAKE = '''# SPDX-License-Identifier: Apache-2.0
cmake_minimum_required(VERSION 3.16)
project(@name@_estimator C)
set(CMAKE_C_STANDARD 99)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_library(@name@_estimator STATIC @name@.c @name@_casadi.c)
target_include_directories(@name@_estimator PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(@name@_estimator PUBLIC m)
set_target_properties(@name@_estimator PROPERTIES POSITION_INDEPENDENT_CODE ON)
enable_testing()
add_executable(test_estimator test_estimator.c)
target_link_libraries(test_estimator @name@_estimator)
add_test(NAME recorded COMMAND test_estimator)
'''

README = '''# Motion and payload of @machine@ as C

Machine's file: fingerprint `@fingerprint@`; written by `mbse export-c @machine@ --estimator` of mbse_ros
@version@: write it again rather than edit it. Plain C99, @precision@ precision, no dependencies but libm. @rate@
ticks a second with @substeps@ steps each.

| file | holds |
|---|---|
| `@name@.h` | all there is to know to use it: inputs, outputs, units, statuses |
| `@name@.c` | the tick, the machine's numbers |
| `@name@_casadi.c` | the machine's equations and their derivatives, generated by CasADi |
| `test_estimator.c` | recorded ticks and what the Python estimator gave for them |
| `CMakeLists.txt` | the library `@name@_estimator` and its test |
| `mbse_export.json` | names, units and options, for programs |

## Test

    cc -std=c99 -O2 *.c -lm -o test_estimator && ./test_estimator

Do not compile with `-ffast-math`: a sample that is missing is NAN.

## Use

```c
static @name@_estimator e;
@name@_input in;
@name@_output out;

@name@_init(&e);
for (;;) {                                  /* @rate@ times a second */
  in.sample[...] = ...;                     /* NAN where a sensor has sent nothing */
  @name@_step(&e, &in, &out);
  if (out.status == @NAME@_UPDATING) use(out.mass, out.lower, out.upper);
}
```

`mass` is NAN unless samples of this tick went into it. A mass that is held is in `held_mass`, and `held_for` says for
how long. What the C does not do: docs/export_c.md of mbse_ros.

## Names

@names_tables@
'''



