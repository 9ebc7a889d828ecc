import { randomBytes } from 'node:crypto'
import { print, progress, runCommand } from '../shared/cli.ts'
import { fuzz } from './fuzz.ts'
import { type FuzzOptions, fuzzUsage, parseFuzzOptions } from './options.ts'
import { isClean, toFuzzJson, toFuzzText } from './report/report.ts'

const run = async (options: FuzzOptions, cleanup: AsyncDisposableStack): Promise<number> => {
  const say = (line: string) => progress(`${(performance.now() / 1_000).toFixed(1)} s: ${line}`)
  const report = await fuzz(options, cleanup, say)
  print(options.json ? toFuzzJson(report) : toFuzzText(report))
  return isClean(report) ? 0 : 1
}

await runCommand({
  name: 'fuzz',
  usage: fuzzUsage,
  parse: args => parseFuzzOptions(args, randomBytes(4).toString('hex')),
  run,
})
