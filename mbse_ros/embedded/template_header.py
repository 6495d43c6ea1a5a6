# SPDX-License-Identifier: Apache-2.0
"""Text of the header; ``@name@`` is the prefix of functions and types, ``@NAME@`` that of macros."""

from __future__ import annotations

HEADER = r'''/* SPDX-License-Identifier: Apache-2.0 */
/* Motion and payload of the machine @machine@, once a tick: see README.md.
 *
 * Machine's file: fingerprint @fingerprint@; written by mbse_ros @version@. SI units: m, rad, Pa, V, s, kg.
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
#define @NAME@_CONTRADICTED 7       /* the samples contradict the model: mean_nis is above @NAME@_LARGEST_NIS */
#define @NAME@_WAITING 8            /* moving, but not yet for the guard time: no sample of this tick counts */

/* observer: trust in the state */
#define @NAME@_OK 0
#define @NAME@_STARTING 1           /* settling after a start */
#define @NAME@_COASTING 2           /* a sensor is missing or wrong */
#define @NAME@_LOST 3               /* the state is given up; the next tick starts again */

/* bits of reasons */
#define @NAME@_NOT_FINITE 1u        /* the state left the finite numbers */
#define @NAME@_NOTHING_MEASURED 2u
#define @NAME@_FAR_OUTSIDE 4u       /* a position far outside its range, or not known */
#define @NAME@_HALF_REJECTED 8u     /* half of the channels, or more, contradict the state */
#define @NAME@_DOUBTFUL 16u         /* a channel whose samples are all rejected */
#define @NAME@_FIRST_SAMPLES 32u    /* before the second sample of a start */

/* bits of channel[]: what is wrong with a sample; 0: it was used */
#define @NAME@_MISSING 1u           /* NAN, or the one before was */
#define @NAME@_REJECTED 2u          /* beyond the gate: left out */
#define @NAME@_CONSTANT 4u          /* has not changed though the machine moves: left out */
#define @NAME@_BELOW_VACUUM 8u      /* left out */
#define @NAME@_AT_END_OF_RANGE 16u  /* left out */
#define @NAME@_FAR_AWAY 32u         /* a position, or pressure, that the machine cannot have: left out */
#define @NAME@_JUMPED 64u           /* a position that no machine moves to so fast: left out until it is back */

#define @NAME@_LARGEST_NIS @R@(@largest_nis@) /* of mean_nis, about 1 where model and sensors are right */

/* What goes in: the samples of one instant, and the valve commands in force from that instant on. */
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
  @name@_real held_mass;         /* kg, the mass known last, whatever the status; NAN before the first */
  @name@_real held_lower, held_upper; /* kg */
  @name@_real held_stddev;       /* kg, noise and uncertain numbers of the machine's file together */
  @name@_real held_for;          /* s since status was @NAME@_UPDATING last; INFINITY where it never was */
  @name@_real raw;               /* kg, of the last sample alone; NAN where there is none */
  @name@_real mean_nis;          /* innovations squared over their variances, mean of late */
  int taken;                     /* samples of this tick that went into the mass */
  unsigned channel[@channels1@]; /* bits: what is wrong with each sample */
  @name@_real state[@NAME@_STATES], state_stddev[@NAME@_STATES]; /* SI; NAN before the start */
} @name@_output;

/* All memory. The members are private: use the functions. */
typedef struct {
  @name@_real x[@nx_all@], start[@nx_all@], next[@nx_all@], best[@nx_all@]; /* of the observer */
  @name@_real y[@ny@], p[@np@], u[@nu@];
  @name@_real xs[@ns@], xs_next[@ns@], P[@nx@ * @nx@], mean[@nx@]; /* of the samples of the mass */
  @name@_real row[@nrow@], rows[@substeps@][@width@], waiting[@guard1@][@width@];
  @name@_real sums[@width@], window[@window@][@width@ - 1], value[@width@];
  @name@_real batch[2], moment[3];
  @name@_real innovation[@channels1@], variance[@channels1@];
  @name@_real last_sample[@channels1@], last_command[@commands1@], sample[@channels1@];
  @name@_real constant_value[@channels1@], low[@channels1@], high[@channels1@], offset[@channels1@];
  @name@_real jump_from[@channels1@], jumped[@channels1@], nis;
  @name@_real w[@sz_w@];
  const @name@_real *arg[@sz_arg@];
  @name@_real *res[@sz_res@];
  int iw[@sz_iw@];
  unsigned unused[@channels1@], same[@channels1@], since_jump[@channels1@], age, held;
  unsigned ticks_waiting, clean, in_window, window_end, batched, batches, samples, known;
  unsigned char rejected[@channels1@], seen[@channels1@], constant[@channels1@], jump_known[@channels1@];
  unsigned char started, placed, sampled;
} @name@_estimator;

/* Begin with nothing known. Call it once before the first step. */
void @name@_init(@name@_estimator *e);

/* One tick. Missed ticks: call @name@_gap first. */
void @name@_step(@name@_estimator *e, const @name@_input *in, @name@_output *out);

/* Another load: forget the mass, keep the motion. */
void @name@_new_load(@name@_estimator *e);

/* Samples were missing for longer than a tick: the motion starts again from the next two samples, the mass stays. */
void @name@_gap(@name@_estimator *e);

/* Names of the vectors, by their places */
extern const char *const @name@_channel_names[];
extern const char *const @name@_state_names[];

#ifdef __cplusplus
}
#endif
#endif
'''
