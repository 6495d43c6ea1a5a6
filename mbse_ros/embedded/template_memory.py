# SPDX-License-Identifier: Apache-2.0
"""All memory of an exported estimator."""

from __future__ import annotations

# of the samples, and what CasADi's functions need, with either weighing
SAMPLES = r'''  @name@_real innovation[@channels1@], variance[@channels1@];
  @name@_real last_sample[@channels1@], last_command[@commands1@], sample[@channels1@];
  @name@_real constant_value[@channels1@], low[@channels1@], high[@channels1@], offset[@channels1@];
  @name@_real recent_samples[@step_rows@][@channels1@], stepped[@channels1@];
  @name@_real series[@channels1@][@series@], step[@channels1@];
  unsigned seen_ago[@channels1@], period[@channels1@];
  int recent_rows;
  unsigned char series_count[@channels1@], noisy[@channels1@];
  @name@_real jump_from[@channels1@], jumped[@channels1@], nis, looked;
  unsigned unused[@channels1@], same[@channels1@], since_jump[@channels1@], held;
  unsigned char rejected[@channels1@], seen[@channels1@], constant[@channels1@], jump_known[@channels1@];
  unsigned char started, placed, sampled, begun, settled;
  double age, looked_at;
  @name@_real w[@sz_w@];
  const @name@_real *arg[@sz_arg@];
  @name@_real *res[@sz_res@];
  int iw[@sz_iw@];
'''
APART_MEMORY = r'''/* All memory. The members are private: use the functions. */
typedef struct {
  @name@_real x[@nx_all@], start[@nx_all@], next[@nx_all@], best[@nx_all@]; /* of the observer */
  @name@_real y[@ny@], p[@np@], u[@nu@];
  @name@_real xs[@ns@], xs_next[@ns@], P[@nx@ * @nx@], mean[@nx@]; /* of the samples of the mass */
  @name@_real row[@nrow@], rows[@substeps@][@width@], waiting[@guard1@][@width@];
  @name@_real sums[@width@], window[@window@][@width@ - 1], value[@width@];
  @name@_real batch[2], moment[3];
  unsigned ticks_waiting, clean, in_window, window_end, batched, batches, samples, known;
''' + SAMPLES + '''} @name@_estimator;
'''
JOINT_MEMORY = r'''/* Sums of samples of the mass, their low-pass and window. */
typedef struct {
  @name@_real sums[@width@], window[@window@][@width@ - 1], value[@width@ - 1], batch[2], moment[3], share;
  double kept;
  unsigned in_window, window_end, batched, batches, samples;
  unsigned char known;
} @name@_filter;

/* A tenth of a second of samples. */
typedef struct {
  double sums[@width@], kept, share, pre, fade, prior[@width@ - 1], seconds;
  unsigned char before, loose, opened;
} @name@_block;

typedef struct {
  double slopes[@width@ - 1];
  @name@_real mass, stddev, half, noise, weighed, raw, lean;
  int gate, taken, whole, contradiction, surprise, settling, zeros;
} @name@_mass_result;

typedef struct {
  double slopes[@width@ - 1];
  @name@_real mass, noise, weighed;
  int whole;
} @name@_weighed_mass;

/* All memory. The members are private: use the functions. */
typedef struct {
  /* of the observer */
  @name@_real x[@nx_all@], start[@nx_all@], next[@nx_all@], best[@nx_all@];
  @name@_real y[@ny@], p[@np@], u[@nu@], mean[@nx@], report[@substeps@][@width@ + 1];
  @name@_real since[@actuated@], unseen, command_step[@commands1@];
  double pause, paused_for, shocks, silent_for[@pushes1@];
  double command_now, command_changed[@commands1@], rare_until;
  int outside, streak[@channels1@];
  unsigned char shut[@equations@], since_known, commanded, rare, has_state;
  /* of the mass */
  @name@_real xs[@ns@], xs_next[@ns@], row[2], restarted;
  @name@_filter filter, memory[2];
  @name@_mass_result mass;
  double remembered;
  int memories;
  /* of the errors that all masses have in common */
  @name@_block blocks[@pool@];
  double L[(@width@ - 1) * (@width@ - 1)], P[(@width@ - 1) * (@width@ - 1)], h[@width@ - 1], common[@width@ - 1];
  double base_L[(@width@ - 1) * (@width@ - 1)], base_h[@width@ - 1], prior[@width@ - 1], belief;
  double then_L[(@width@ - 1) * (@width@ - 1)], then_h[@width@ - 1], then_x[@width@ - 1];
  double then_G[(@width@ - 1) * @width@ / 2], spread[@recent@ * (@recent@ + 1) / 2];
  double rows[@recent@][@width@ - 1], off[@recent@], noise[@recent@], shape[@recent@];
  double squares[@sudden1@], sizes[@sudden1@], leans[@shortest@], sums[@width@], common_kept, surprise, pending;
  double step_size;
  double common_now, fading, due_at[@due@];
  int summed, passed, recent_count, due_count, lean_count, said, opened, incredible, may_step;
  unsigned corrected, compared, since_change, lasted;
  unsigned char recent[@recent@], due[@due@], broken[@width@ - 1], wrong_zero[@width@ - 1], unsettled;
  /* of what judges the mass */
  @name@_weighed_mass log[@log@], drift[@drift@], newest;
  @name@_real way_low, way_high;
  double now, doubted_at, log_t[@log@], log_kept[@log@], weighed_for, paused, changing_for;
  double drift_since, drift_settling, wanted, calm_for, free_for, alarm_ago, changes, doubt;
  int log_first, log_count, mass_found, unseen_load, changing, after_pause, doubted;
  int drift_count, drifts, direction, alarm_direction, distrusted, alarmed;
  /* of pressures that may be exchanged, and of contacts */
  @name@_real window_x[@ne@], window_P[@ne@ * @ne@], window_speed[@g@], window_spread[@g@ * @g@];
  @name@_real window_used[@seen1@], window_sum[@seen1@], ways_near[@ns@];
  @name@_real ways_masses[@ways1@ * @equations@], ways_rooms[@ways1@ * @equations@], ways_low[@ways1@];
  @name@_real ways_high[@ways1@];
  double window_lasted, ways_free, pushed_for;
  int window_rows, contradictions, contradicting, contact_begun, pushed_windows, unexplained, touches;
  int ways_placed, window_begun, ways_known, ways_found, ways_open, exchanged;
  unsigned char suspected[@ways1@], other_way[@ways1@], one_signal[@ways1@];
  @name@_real signal_mean[3 * @ways1@], signal_variance[3 * @ways1@];
  double signal_seen[@ways1@];
''' + SAMPLES + '''} @name@_estimator;
'''
