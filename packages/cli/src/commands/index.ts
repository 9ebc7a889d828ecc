import type { CommandSpec, GroupSpec } from '../command.ts'
import { completionCommand } from './completion.ts'
import { contextCommands } from './contexts.ts'

/** Every command, in the order of the help. */
export const commands: readonly (CommandSpec | GroupSpec)[] = [contextCommands, completionCommand]
