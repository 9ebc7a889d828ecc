import { describe, expect, test } from 'vitest'
import { binary, howToInstall, mustRun } from './terraform.ts'

/** Tests that need the real binary. Without it they are skipped, or fail if all dependencies are required. */
export function withTerraform(title: string, tests: () => void): void {
  const named = binary === null ? `${title} (${howToInstall})` : title
  describe.skipIf(binary === null && !mustRun)(named, () => {
    if (binary !== null) tests()
    else test('terraform is installed', () => expect.fail(howToInstall))
  })
}
