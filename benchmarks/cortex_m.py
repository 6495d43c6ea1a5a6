# SPDX-License-Identifier: Apache-2.0
"""The exported estimator on a Cortex-M4: same numbers? flash, RAM, stack and instructions of a tick.

    tools/environment.sh python benchmarks/cortex_m.py [--machines patu655_lift,zx200] [--weighing apart] [--json FILE]

Needs arm-none-eabi-gcc, newlib for it and qemu-system-arm (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi,
qemu-system-arm). QEMU emulates the board mps2-an386 and counts instructions, not cycles: a Cortex-M4 takes 1 to 2
cycles for most, 14 for a division or square root in single precision.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mbse_ros.embedded.tables import EstimatorSetup
from mbse_ros.embedded.write import export_estimator
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import load_machine
from mbse_ros.payload.mass import PayloadSettings

TOOLS = 'arm-none-eabi-gcc', 'arm-none-eabi-size', 'qemu-system-arm'
CPU = ['-mcpu=cortex-m4', '-mthumb', '-mfloat-abi=hard', '-mfpu=fpv4-sp-d16']
STRICT = ['-std=c99', '-pedantic', '-Wall', '-Wextra', '-Werror', '-ffunction-sections', '-fdata-sections']
COUNTED = 100           # ticks
STACK = 0x20000         # bytes that are painted

LINK = '''ENTRY(reset)
MEMORY { flash (rx) : ORIGIN = 0x0, LENGTH = 4M
         ram (rwx) : ORIGIN = 0x20000000, LENGTH = 4M }
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > flash
  .ARM.exidx : { *(.ARM.exidx*) } > flash
  .data : { data_begin = .; *(.data*) . = ALIGN(4); data_end = .; } > ram AT > flash
  data_load = LOADADDR(.data);
  .bss : { bss_begin = .; *(.bss*) *(COMMON) . = ALIGN(8); bss_end = .; end = .; } > ram
  stack_top = 0x20400000;
}
'''
START = '''extern char data_begin[], data_end[], data_load[], bss_begin[], bss_end[], stack_top[];
int main(void);
void exit(int);
void initialise_monitor_handles(void);
void reset(void);
__attribute__((section(".vectors"), used)) static void *const vectors[2] = {stack_top, (void *)reset};
void reset(void) {
  char *from = data_load, *to;
  *(volatile unsigned *)0xE000ED88 |= 0xFu << 20;       /* the floating-point unit */
  for (to = data_begin; to < data_end; ) *to++ = *from++;
  for (to = bss_begin; to < bss_end; ) *to++ = 0;
  PREPARE
  exit(main());
}
'''
BENCH = '''#define main recorded_main
#include "test_estimator.c"
#undef main
#define SYSTICK ((volatile unsigned *)0xE000E010)
extern char stack_top[];
static @name@_input in;
static @name@_output out;
int main(void) {
  unsigned long most = 0, all = 0, used = @stack@;
  char *const bottom = stack_top - @stack@;
  char *at;
  int k, j, failed;
  for (at = bottom; at < (char *)__builtin_frame_address(0) - 512; ++at) *at = 0x5a;
  @name@_init(&e);
  SYSTICK[1] = 0xffffffu; SYSTICK[2] = 0; SYSTICK[0] = 5;
  for (k = 0; k < TICKS; ++k) {
    unsigned before;
    for (j = 0; j < CHANNELS; ++j) in.sample[j] = samples[k][j];
    for (j = 0; j < COMMANDS; ++j) in.command[j] = commands[k][j];
    before = SYSTICK[2];
    @name@_step(&e, &in, &out);
    {
      const unsigned long count = (before - SYSTICK[2]) & 0xffffffu;
      if (count > most) most = count;
      if (k >= TICKS - @counted@) all += count;
    }
  }
  for (at = bottom; *at == 0x5a; ++at) --used;
  failed = recorded_main();
  printf("BENCH mean %lu most %lu stack %lu\\n", all * 40 / @counted@, most * 40, used);
  return failed;
}
'''
BARE = '''#include "@name@.h"
static @name@_estimator e;
static @name@_input in;
static volatile int status;
int main(void) {
  @name@_output out;
  @name@_init(&e);
  for (;;) { @name@_step(&e, &in, &out); status = out.status; }
}
void _exit(int code) { (void)code; for (;;) { } }
'''


def run(*words: object, folder: Path) -> str:
    """Output of a program; ends with its errors where it fails."""
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'{" ".join(map(str, words))}\n{done.stdout}{done.stderr}')
    return done.stdout


def filled(text: str, name: str) -> str:
    """A template with its words."""
    for word, value in (('name', name), ('counted', COUNTED), ('stack', STACK)):
        text = text.replace(f'@{word}@', str(value))
    return text


def measured(machine: str, weighing: str, single: bool, folder: Path) -> dict[str, object]:
    """Export, compile, run; sizes in bytes, instructions of a tick."""
    of = EstimatorSetup(load_machine(machine), ObserverSettings(weighing=weighing), PayloadSettings())
    name = export_estimator(of, folder, single).prefix
    for file, text in (('link.ld', LINK), ('bench.c', filled(BENCH, name)), ('bare.c', filled(BARE, name)),
                       ('start.c', START.replace('PREPARE', 'initialise_monitor_handles();')),
                       ('bare_start.c', START.replace('PREPARE', ''))):
        (folder / file).write_text(text)
    flags = [*CPU, '-O2', *STRICT]
    for file in (f'{name}.c', f'{name}_casadi.c'):
        run('arm-none-eabi-gcc', *flags, '-c', file, folder=folder)
    objects = [f'{name}.o', f'{name}_casadi.o']
    linked = ['-nostartfiles', '-T', 'link.ld', '-Wl,--gc-sections', '-lm']
    run('arm-none-eabi-gcc', *CPU, '-O2', 'bench.c', 'start.c', *objects, *linked, '-specs=rdimon.specs', '-o',
        'bench.elf', folder=folder)
    run('arm-none-eabi-gcc', *CPU, '-O2', 'bare.c', 'bare_start.c', *objects, *linked, '-specs=nosys.specs', '-o',
        'bare.elf', folder=folder)
    text, data, bss = map(int, run('arm-none-eabi-size', 'bare.elf', folder=folder).splitlines()[1].split()[:3])
    told = run('qemu-system-arm', '-M', 'mps2-an386', '-nographic', '-semihosting', '-icount', 'shift=0', '-kernel',
               'bench.elf', folder=folder)
    off = re.search(r'ok: (\d+) ticks, (\d+) with a mass; largest difference of the mass (\S+), of a position (\S+) ',
                    told)
    counts = re.search(r'BENCH mean (\d+) most (\d+) stack (\d+)', told)
    if not (off and counts):
        sys.exit(told)
    return {'machine': machine, 'precision': 'single' if single else 'double', 'ticks': int(off[1]),
            'with_mass': int(off[2]), 'mass_difference': float(off[3]), 'position_difference': float(off[4]),
            'flash_bytes': text + data, 'ram_bytes': data + bss, 'stack_bytes': int(counts[3]),
            'instructions': int(counts[1]), 'most_instructions': int(counts[2])}


def main() -> None:
    """Table of all machines in both precisions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--machines', default='patu655_lift,patu655,zx200')
    parser.add_argument('--weighing', default='joint', choices=('joint', 'apart'))
    parser.add_argument('--json', type=Path)
    words = parser.parse_args()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        sys.exit(f'{", ".join(missing)} not found (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm)')
    rows = []
    print(f'{"machine":14} {"":6} {"mass":>8} {"position":>8} {"flash kB":>8} {"RAM kB":>7} {"stack":>6} '
          f'{"M instructions a tick":>22} {"at most":>8}')
    for machine in words.machines.split(','):
        for single in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                row = measured(machine, words.weighing, single, Path(folder))
            rows.append(row)
            print(f'{machine:14} {row["precision"]:6} {row["mass_difference"]:8.1e} {row["position_difference"]:8.1e} '
                  f'{row["flash_bytes"] / 1024:8.0f} {row["ram_bytes"] / 1024:7.0f} {row["stack_bytes"]:6} '
                  f'{row["instructions"] * 1e-6:22.3f} {row["most_instructions"] * 1e-6:8.3f}', flush=True)
    if words.json:
        words.json.write_text(json.dumps({'rows': rows}, indent=2) + '\n')


if __name__ == '__main__':
    main()
