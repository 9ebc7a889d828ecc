import { appendFileSync, closeSync, constants, openSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { ClockWatch } from './clock-watch.ts'
import { TenureJudge } from './tenure-judge.ts'

/**
 * Watches the candidates from outside: reads their lines from a named pipe as they are written, and stamps each with its own
 * clock. It does nothing else, and no fault of the test affects it. It appends the starts and stops to a log as
 * `<ms> <line>`, and writes what the judge found to a file when it reads the line `test end`. It also compares the wall clock of the
 * machine with its own clock, because a step of it can expire leases early.
 */

const [pipePath = '', logPath = '', summaryPath = ''] = process.argv.slice(2)
const POLL_MS = 1
/** More than a pipe holds, so each read empties it and ends with a whole line. */
const buffer = Buffer.alloc(1_048_576)
const parent = process.ppid

/** CLOCK_MONOTONIC. */
const now = () => Number(process.hrtime.bigint()) / 1e6
const flag = new Int32Array(new SharedArrayBuffer(4))

const pipe = openSync(pipePath, constants.O_RDONLY | constants.O_NONBLOCK)
writeSync(process.stdout.fd, 'ready\n')

const readPipe = (): string => {
  try {
    return buffer.toString('utf8', 0, readSync(pipe, buffer))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return ''
    throw error
  }
}

const judge = new TenureJudge()
const machineClock = new ClockWatch()
let hasEnded = false
let after = now()
while (!hasEnded && process.ppid === parent) {
  const readFrom = now()
  const wallMs = Date.now()
  machineClock.observe(wallMs, { after: readFrom, at: now() })
  const text = readPipe()
  const at = now()
  if (text === '') Atomics.wait(flag, 0, 0, POLL_MS)
  else if (!text.endsWith('\n')) throw new Error('a line of a candidate is longer than PIPE_BUF')
  for (const line of text.split('\n').slice(0, -1)) {
    if (line === 'test end') {
      hasEnded = true
      break
    }
    const [candidate = '', kind = '', slot = '', ...data] = line.split(' ')
    judge.observe({ after, at, candidate, kind, slot, data })
    if (kind === 'start' || kind === 'stop') appendFileSync(logPath, `${at.toFixed(3)} ${line}\n`)
  }
  after = readFrom
}
closeSync(pipe)
writeFileSync(summaryPath, JSON.stringify({ ...judge.summarize(), machineClockSteps: machineClock.steps }))
