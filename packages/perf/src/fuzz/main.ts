import { randomBytes } from 'node:crypto'
import { print, progress, runCommand } from '../shared/cli.ts'
import { fuzz } from './fuzz.ts'
import { type Options, parseOptions, usage } from './options.ts'
import { isClean, reportJson, reportText } from './report/report.ts'

const run = async (options: Options, cleanup: AsyncDisposableStack): Promise<number> => {
  const say = (line: string) => progress(`${(performance.now() / 1_000).toFixed(1)} s: ${line}`)
  const report = await fuzz(options, cleanup, say)
  print(options.json ? reportJson(report) : reportText(report))
  return isClean(report) ? 0 : 1
}

await runCommand({
  name: 'fuzz',
  usage,
  parse: args => parseOptions(args, randomBytes(4).toString('hex')),
  run,
})
