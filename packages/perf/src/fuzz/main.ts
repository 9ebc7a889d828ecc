import { randomBytes } from 'node:crypto'
import { print, refuse, runToEnd } from '../bench/command.ts'
import { type Options, parseArguments, usage } from './arguments.ts'
import { fuzz } from './fuzz.ts'
import { isClean, reportJson, reportText } from './report/report.ts'

// Not into the report: that may be JSON on its way to a file.
const say = (line: string) => process.stderr.write(`# ${(performance.now() / 1_000).toFixed(1)} s: ${line}\n`)

const runAndPrint = async (options: Options, cleanup: AsyncDisposableStack): Promise<number> => {
  const report = await fuzz(options, cleanup, say)
  print(options.json ? reportJson(report) : reportText(report))
  return isClean(report) ? 0 : 1
}

const parsed = parseArguments(process.argv.slice(2), randomBytes(4).toString('hex'))
if (parsed.kind === 'help') print(usage)
else if (parsed.kind === 'fault') refuse('fuzz', parsed.detail)
else await runToEnd('fuzz', cleanup => runAndPrint(parsed.options, cleanup))
