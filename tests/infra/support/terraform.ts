import { execFile, spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'

/** The installed binary: that of INFRA_BINARY, else terraform, else tofu. */
export const binary =
  (process.env.INFRA_BINARY ? [process.env.INFRA_BINARY] : ['terraform', 'tofu']).find(
    name => spawnSync(name, ['version'], isolatedEnv()).status === 0,
  ) ?? null

/** Some of its messages differ from those of Terraform. */
export const isTofu = binary === 'tofu'

export const howToInstall =
  process.env.INFRA_BINARY === 'tofu'
    ? 'missing tofu 1.7 or later, which INFRA_BINARY asks for: https://opentofu.org/docs/intro/install/'
    : 'missing terraform 1.7 or later (or tofu): https://developer.hashicorp.com/terraform/install'

/** Makes a missing binary fail the tests instead of skipping them. */
export const mustRun = process.env.REQUIRE_ALL_DEPS === '1'

/** A minimal environment: proxies, tokens and plugin caches of the machine must not affect the run. */
export function isolatedEnv(more: Record<string, string> = {}): { env: Record<string, string> } {
  return {
    env: {
      PATH: process.env.PATH ?? '',
      TF_CLI_CONFIG_FILE: '/dev/null',
      CHECKPOINT_DISABLE: '1',
      TF_IN_AUTOMATION: '1',
      TF_INPUT: '0',
      // No garbage collector: a command with a small state is faster without it.
      GOGC: 'off',
      ...more,
    },
  }
}

export interface CommandResult {
  readonly code: number
  readonly output: string
}

/** Runs a command. Returns the output of both streams and the exit code. */
export function run(directory: string, args: readonly string[], env: Record<string, string>): Promise<CommandResult> {
  return new Promise(resolve => {
    execFile(
      binary ?? 'terraform',
      args,
      { cwd: directory, maxBuffer: 16 << 20, timeout: 150_000, ...isolatedEnv(env) },
      (reason, stdout, stderr) => {
        const code = reason ? (typeof reason.code === 'number' ? reason.code : -1) : 0
        resolve({ code, output: stdout + stderr })
      },
    )
  })
}

/** Tests that need the real binary. Without it they are skipped, or fail if all dependencies are required. */
export function withTerraform(title: string, tests: () => void): void {
  const named = binary === null ? `${title} (${howToInstall})` : title
  describe.skipIf(binary === null && !mustRun)(named, () => {
    if (binary !== null) tests()
    else test('terraform is installed', () => expect.fail(howToInstall))
  })
}
