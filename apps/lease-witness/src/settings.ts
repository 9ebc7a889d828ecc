import type { LogSettings } from './log.ts'

/** The variables and secrets of the witness, the same on every host. Texts, as the environment has them. */
export interface WitnessSettings extends LogSettings {
  /** The allow-list: tokens separated by commas. If it is empty or absent, every request is rejected. */
  readonly BEARER_TOKENS_CSV?: string
}
