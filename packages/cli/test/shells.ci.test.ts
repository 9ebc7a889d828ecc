import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { isRunning } from '@pool/test-kit/processes.ts'
import { describe, test } from 'vitest'
import { createCliFolder, ENTRY, runPoolctl } from './support/cli.ts'

const isMissing = spawnSync('tmux', ['-V']).error !== undefined
const missingTmux = isMissing ? 'poolctl in a shell: apt-get install tmux' : undefined

const PROMPT = '$ '

/** How each shell starts without the files of the user, and adds a line to the file `codes` at the end of each command. */
const SHELLS = {
  bash: { command: 'exec bash --noprofile --norc -i', setup: `PS1='${PROMPT}'; PROMPT_COMMAND='echo $? >> codes'` },
  zsh: {
    command: 'exec zsh -f -i',
    setup: `unsetopt prompt_sp zle_bracketed_paste; PROMPT='${PROMPT}'; precmd() { echo $? >> codes }`,
  },
  fish: {
    command: 'exec fish --no-config --interactive',
    setup: `set -g fish_greeting; function fish_prompt; echo $status >> codes; echo -n '${PROMPT}'; end`,
  },
} as const
type ShellName = keyof typeof SHELLS

interface ShellOptions {
  readonly shell: ShellName
  /** The working directory, with the program `poolctl` in the folder `bin`. */
  readonly folder: string
  readonly env: NodeJS.ProcessEnv
}

export interface Shell extends AsyncDisposable {
  /** Types a line, and waits for its end. */
  run(line: string): Promise<void>
  /** Types on the keyboard; a key of tmux such as `Tab` or `C-c` is one argument. */
  press(...keys: readonly string[]): Promise<void>
  type(text: string): Promise<void>
  /** The text of the screen. Lines that the terminal wrapped are joined. */
  read(): Promise<string>
}

/** Opens an interactive shell in a terminal of tmux, with a server of its own. */
const openShell = async ({ shell, folder, env }: ShellOptions): Promise<Shell> => {
  const { command, setup } = SHELLS[shell]
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'poolctl'), `#!/bin/sh\nexec '${process.execPath}' '${ENTRY}' "$@"\n`, { mode: 0o755 })
  const codesFile = join(folder, 'codes')
  const tmux = async (...args: readonly string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)('tmux', ['-S', join(folder, 'tmux'), '-f', '/dev/null', ...args], {
      cwd: folder,
      env: { ...env, PATH: `${bin}:${process.env.PATH}`, LANG: 'C.UTF-8', TERM: 'xterm-256color', SHELL: '/bin/sh' },
    })
    return stdout
  }
  const read = async () =>
    (await tmux('capture-pane', '-p', '-J'))
      .split('\n')
      .map(line => line.trimEnd())
      .join('\n')
      .trimEnd()
  const press = async (...keys: readonly string[]) => void (await tmux('send-keys', ...keys))
  const type = async (text: string) => void (await tmux('send-keys', '-l', text))
  const readCodes = () => (existsSync(codesFile) ? readFileSync(codesFile, 'utf8').trim().split('\n') : [])

  await tmux('new-session', '-d', '-x', '100', '-y', '50', command)
  const pid = Number(await tmux('display-message', '-p', '#{pane_pid}'))
  await type(setup)
  await press('Enter')
  await until(`${shell} shows its prompt`, () => readCodes().length > 0)

  return {
    read,
    press,
    type,
    async run(line) {
      const before = readCodes().length
      await type(line)
      await press('Enter')
      await until(`${line} has ended`, () => readCodes().length > before)
    },
    async [Symbol.asyncDispose]() {
      await tmux('kill-server').catch(() => undefined)
      // A shell writes its history when it ends.
      await until(`${shell} has ended`, () => !isRunning(pid))
    },
  }
}

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
