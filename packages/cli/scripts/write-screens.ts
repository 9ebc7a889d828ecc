import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { takeScreens } from '../test/support/screens.ts'

// Writes docs/clients/poolctl-screens.md. A test compares it with the screens of the current code.

const page = await takeScreens()
writeFileSync(fileURLToPath(new URL('../../../docs/clients/poolctl-screens.md', import.meta.url)), page)
