import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { expect, test } from 'vitest'
import { maskScreens, takeScreens } from './support/screens.ts'
import { missingTmux } from './support/shell.ts'
import { missingTerraform } from './support/terraform.ts'

const page = fileURLToPath(new URL('../../../docs/clients/poolctl-screens.md', import.meta.url))

test.skipIf(shouldSkip(missingTmux ?? missingTerraform))(
  'the screens of the documentation are those of the commands',
  { timeout: 900_000 },
  async () => {
    const screens = await takeScreens()
    expect(maskScreens(screens), 'run: node packages/cli/scripts/write-screens.ts').toBe(
      maskScreens(readFileSync(page, 'utf8')),
    )
  },
)
