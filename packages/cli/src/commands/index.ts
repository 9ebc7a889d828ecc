import type { CommandSpec, GroupSpec } from '../command.ts'
import { completionCommand } from '../completion.ts'
import { bucketCommands } from './buckets.ts'
import { contextCommands } from './contexts.ts'
import { credentialCommands } from './credentials.ts'
import { deploymentCommands } from './deployments.ts'
import { doctorCommand } from './doctor.ts'
import { leaseCommands } from './leases.ts'
import { migrateCommand } from './migrate-from-pdm.ts'
import { nameCommands } from './names.ts'
import { recordCommands } from './records.ts'
import { exportCommand, importCommand } from './transfer.ts'
import { zoneCommands } from './zones.ts'

/** Every command, in the order of the help. */
export const commands: readonly (CommandSpec | GroupSpec)[] = [
  nameCommands,
  recordCommands,
  zoneCommands,
  bucketCommands,
  deploymentCommands,
  leaseCommands,
  credentialCommands,
  doctorCommand,
  exportCommand,
  importCommand,
  migrateCommand,
  contextCommands,
  completionCommand,
]
