import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { describe, test } from 'vitest'
import { createCliFolder, runPoolctl } from './support/cli.ts'
import { missingTmux, openShell, type ShellName } from './support/shell.ts'

/** What a user has in the configuration of the shell. */
const LOAD: Readonly<Record<ShellName, readonly string[]>> = {
  bash: ['source <(poolctl completion bash)'],
  zsh: ['autoload -Uz compinit; compinit -D', 'source <(poolctl completion zsh)'],
  fish: ['poolctl completion fish | source'],
}

describe.each(Object.keys(LOAD) as ShellName[])('the completion of %s', shell => {
  const isMissing = spawnSync(shell, ['--version']).error !== undefined
  const missing = isMissing ? `the completion of ${shell}: apt-get install ${shell}` : missingTmux

  test.skipIf(shouldSkip(missing))('completes what is typed in an interactive shell', async () => {
    using home = createCliFolder()
    await runPoolctl(['contexts', 'set', 'prod', '--api', 'https://pool.example'], home)
    writeFileSync(join(home.folder, 'installation.ndjson'), '')
    await using terminal = await openShell({ shell, folder: home.folder, env: home.env })
    for (const line of LOAD[shell]) await terminal.run(line)
    for (const [typed, completed] of [
      ['poolctl lea', 'poolctl leases'],
      ['poolctl contexts li', 'poolctl contexts list'],
      ['poolctl --context p', 'poolctl --context prod'],
      ['poolctl names list pool.example --state act', 'poolctl names list pool.example --state active'],
      ['poolctl import instal', 'poolctl import installation.ndjson'],
    ] as const) {
      await terminal.type(typed)
      await terminal.press('Tab')
      await until(`${shell} completes ${typed}`, async () => (await terminal.read()).endsWith(completed))
      await terminal.press('C-u')
    }
  })
})
