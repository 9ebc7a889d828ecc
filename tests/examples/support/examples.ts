import { resolve } from 'node:path'
import type { Command } from '@pool/test-kit/program.ts'

export const EXAMPLES = resolve(import.meta.dirname, '../../../examples')

/** Runs a TypeScript example with this version of Node. */
export const runTypeScript = (entry: string, env: NodeJS.ProcessEnv, ...args: readonly string[]): Command => ({
  command: process.execPath,
  args: [resolve(EXAMPLES, entry), ...args],
  env,
})
