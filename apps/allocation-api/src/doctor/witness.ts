import type { WitnessSettings } from '../config/witness.ts'
import { createWitness } from '../operator/witness.ts'
import { bad, type Finding, good } from './domain/report.ts'

/** Whether operators can see the leases. Without a configured witness there is nothing to check. */
export const checkWitness = async (witness: WitnessSettings | null, timeoutMs: number): Promise<readonly Finding[]> => {
  if (!witness) return []
  const check = 'lease witness'
  const outcome = await createWitness({ ...witness, timeoutMs }).list({ limit: 1 })
  if (outcome.kind === 'done') return [good(check, 'it responds to PDM_WITNESS_URL and accepts the token')]
  const [reason = '', ...advice] = outcome.detail.split('; ')
  return [bad(check, reason, advice.join('; ') || 'check PDM_WITNESS_URL and PDM_WITNESS_TOKEN')]
}
