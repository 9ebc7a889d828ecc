#!/usr/bin/env node
import { KEEPER_ARGUMENT } from './elect/command.ts'
import { runKeeper } from './elect/keeper.ts'
import { watchSignals } from './host.ts'
import { runCli } from './run.ts'

const [entry = ''] = process.argv.slice(1)
if (process.argv[2] === KEEPER_ARGUMENT) runKeeper()
else {
  // A reader that stops reading, such as head, is not an error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 5))
  const exitCode = await runCli(process.argv.slice(2), {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    entry,
    fetch: globalThis.fetch,
    ...watchSignals(),
  })
  // A request that was rejected before its body was sent keeps its connection open. What was printed is written first.
  process.stderr.write('', () => process.stdout.write('', () => process.exit(exitCode)))
}
