import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { describe, expect, test } from 'vitest'
import { createCliFolder, runPoolctl } from './support/cli.ts'

const complete = async (words: readonly string[], env = {}): Promise<string[]> => {
  const { stdout } = await runPoolctl(['__complete', ...words], { env })
  return stdout
    .trimEnd()
    .split('\n')
    .map(line => line.split('\t')[0] ?? '')
    .filter(Boolean)
}

describe('poolctl __complete', () => {
  test.each([
    ['the first word', ['conte'], ['contexts']],
    ['a command of a group', ['contexts', 's'], ['show', 'set']],
    ['the value of a flag with choices', ['--output', 'n'], ['ndjson', 'name']],
    ['a flag and its value in one word', ['contexts', 'list', '--output=js'], ['--output=json']],
    [
      'a flag of the command',
      ['contexts', 'set', '--witness-token-'],
      ['--witness-token-file', '--witness-token-command'],
    ],
    ['a flag of every command', ['contexts', 'list', '--cont'], ['--context']],
    ['a file', ['contexts', 'set', 'a', '--api-token-file', ''], [':files']],
    ['an unknown command', ['nonsense', 'x'], []],
    ['a value without suggestions', ['contexts', 'set', 'a', '--api', ''], []],
    ['after a flag with a value', ['--output', 'json', 'contexts', 'u'], ['use']],
  ])('%s', async (_, words, expected) => expect(await complete(words)).toEqual(expected))

  test('suggests the names of the contexts', async () => {
    using home = createCliFolder()
    await runPoolctl(['contexts', 'set', 'prod', '--api', 'https://pool.example'], home)
    expect(await complete(['contexts', 'use', ''], home.env)).toEqual(['prod'])
    expect(await complete(['--context', 'p'], home.env)).toEqual(['prod'])
  })
})

/** Loads a script and asks the shell for the completions of a line. Each prints one candidate per line. */
const ASK: Readonly<Record<string, (line: string) => string>> = {
  bash: line =>
    `source script; read -ra COMP_WORDS <<<"${line}"; [[ "${line}" == *' ' ]] && COMP_WORDS+=(""); COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); _poolctl; printf '%s\\n' "\${COMPREPLY[@]}"`,
  // compadd and _describe need a line editor; these definitions print what the function hands to them.
  zsh: line =>
    `compdef() { :; }; _describe() { local name=$2; print -l -- "\${(@)\${(P)name}%%:*}"; }; _files() { print -l -- *; }; source ./script; words=(\${(Q)\${(z):-"${line}"}}); [[ "${line}" == *' ' ]] && words+=(""); CURRENT=$#words; _poolctl`,
  fish: line => `source script; complete -C "${line}" | string replace -r '\\t.*' ''`,
}

/** Prints the words that it gets, and what `__complete` of poolctl prints. */
const STUB = `#!/bin/sh
printf '<%s>' "$@" > words
case $2 in
  files) echo :files ;;
  *) printf 'list\tList the contexts: all of them\nname with a space\tB\n' ;;
esac
`

describe.each(Object.keys(ASK))('the script of %s', shell => {
  const isMissing = spawnSync(shell, ['--version']).error !== undefined
  const skip = shouldSkip(isMissing ? `the completion of ${shell}: apt-get install ${shell}` : undefined)

  const ask = async (line: string) => {
    using home = createCliFolder()
    const { folder } = home
    writeFileSync(join(folder, 'script'), (await runPoolctl(['completion', shell])).stdout)
    writeFileSync(join(folder, 'poolctl'), STUB, { mode: 0o755 })
    const { stdout, stderr } = spawnSync(shell, ['-c', ASK[shell]?.(line) ?? ''], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: `${folder}:${process.env.PATH}`, HOME: folder },
    })
    return { lines: stdout.trim().split('\n'), stderr, words: readFileSync(join(folder, 'words'), 'utf8') }
  }

  test.skipIf(skip).each([
    ['poolctl contexts ', '<__complete><contexts><>'],
    ['poolctl contexts l', '<__complete><contexts><l>'],
    ['poolctl -o json contexts l', '<__complete><-o><json><contexts><l>'],
  ])('sends the words of %j, the last one incomplete', async (line, words) => {
    const result = await ask(line)
    expect(result).toMatchObject({ stderr: '', words })
    expect(result.lines).toContain('list')
  })

  test.skipIf(skip)('suggests files where poolctl says so', async () => {
    const { lines, stderr } = await ask('poolctl files ')
    expect(stderr).toBe('')
    expect(lines).toEqual(expect.arrayContaining(['poolctl', 'script', 'words']))
  })
})
