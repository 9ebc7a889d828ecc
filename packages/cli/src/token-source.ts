import { spawn } from 'node:child_process'
import type { TokenSource } from './contexts.ts'
import { LocalError, UsageError } from './exit-codes.ts'
import { readPrivateFile } from './private-file.ts'

const COMMAND_TIMEOUT_MS = 60_000
const MAX_TOKEN_LENGTH = 4_096

const toToken = (text: string, what: string): string => {
  const token = text.trim()
  if (token === '') throw new UsageError(`${what} is empty; it must contain one token.`)
  if (token.length > MAX_TOKEN_LENGTH || !/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(`${what} does not contain one token; a token is one line of visible ASCII characters.`)
  }
  return token
}

/** Runs a token command. Its standard error and input are those of the terminal, so that it can prompt. */
const runTokenCommand = (command: string, signal: AbortSignal): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', command], {
      stdio: ['inherit', 'pipe', 'inherit'],
      signal,
      killSignal: 'SIGTERM',
    })
    const timer = setTimeout(() => child.kill('SIGKILL'), COMMAND_TIMEOUT_MS)
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.length > 2 * MAX_TOKEN_LENGTH) child.kill('SIGKILL')
    })
    child.once('error', () => {
      clearTimeout(timer)
      reject(new LocalError('the token command cannot be started; check it with: poolctl contexts show'))
    })
    child.once('close', (code, killedBy) => {
      clearTimeout(timer)
      if (code === 0) resolve(output)
      else {
        const reason = killedBy === null ? `exit code ${code}` : killedBy
        reject(new LocalError(`the token command failed (${reason}); check it with: poolctl contexts show`))
      }
    })
  })

/** Reads a token. Neither the token nor the output of a command is in an error. */
export const readToken = async (source: TokenSource, signal: AbortSignal): Promise<string> => {
  if ('command' in source)
    return toToken(await runTokenCommand(source.command, signal), 'the output of the token command')
  const text = await readPrivateFile(source.file, 'the token file')
  if (text === null) throw new UsageError(`the token file ${source.file} does not exist; create it with mode 600.`)
  return toToken(text, `the token file ${source.file}`)
}
