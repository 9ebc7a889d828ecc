import { execFile, spawnSync } from 'node:child_process'

/** The first of the two that this machine has. */
export const binary = ['terraform', 'tofu'].find(name => spawnSync(name, ['version'], isolated()).status === 0) ?? null

export const howToInstall = 'lacks terraform 1.7 or later (or tofu): https://developer.hashicorp.com/terraform/install'

/** A test that would be skipped for want of the binary fails instead. */
export const mustRun = process.env.REQUIRE_ALL_DEPS === '1'

/** Only what is named: a proxy, a token or a plugin cache of the machine must not reach the run. */
export function isolated(more: Record<string, string> = {}): { env: Record<string, string> } {
  return {
    env: {
      PATH: process.env.PATH ?? '',
      TF_CLI_CONFIG_FILE: '/dev/null',
      CHECKPOINT_DISABLE: '1',
      TF_IN_AUTOMATION: '1',
      TF_INPUT: '0',
      ...more,
    },
  }
}

export interface Outcome {
  readonly code: number
  readonly said: string
}

/** Runs it to its end: whatever it said on either stream, and its exit code. */
export function run(directory: string, args: readonly string[], env: Record<string, string>): Promise<Outcome> {
  return new Promise(resolve => {
    execFile(
      binary ?? 'terraform',
      args,
      { cwd: directory, maxBuffer: 16 << 20, timeout: 60_000, ...isolated(env) },
      (reason, stdout, stderr) => {
        const code = reason ? (typeof reason.code === 'number' ? reason.code : -1) : 0
        resolve({ code, said: stdout + stderr })
      },
    )
  })
}
