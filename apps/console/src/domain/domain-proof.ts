import type { DomainCheck } from '@pool/contract'

export interface ProofStatus {
  readonly tone: 'ok' | 'busy' | 'bad' | 'idle'
  readonly text: string
}

/** Whether the TXT record proves the domain, as a sentence. */
export const describeProof = ({ proof, proofDetail }: Pick<DomainCheck, 'proof' | 'proofDetail'>): ProofStatus => {
  switch (proof) {
    case 'proven':
      return { tone: 'ok', text: 'The record is visible: the domain is proven.' }
    case 'missing':
      return {
        tone: 'busy',
        text: 'The record is not visible yet. A resolver can remember its absence for as long as the SOA record of the zone says.',
      }
    case 'unknown':
      return { tone: 'bad', text: proofDetail ?? 'The record could not be looked up.' }
    case 'not-required':
      return { tone: 'idle', text: 'This service does not require a proof of the domain.' }
  }
}
