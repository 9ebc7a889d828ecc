import { resolve } from 'node:path'
import { startCommand } from './command.ts'

await startCommand(resolve(import.meta.dirname, '../../..'), {
  api: 'apps/allocation-api/src/main.ts',
  witness: 'apps/lease-witness/local/main.ts',
  console: 'apps/console',
})
