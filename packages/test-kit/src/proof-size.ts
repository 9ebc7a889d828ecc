/** Above this, a typing error such as 10 for 10 % is more likely than a wish. */
const MAX_SCALE = 100

/**
 * The value of PROOF_SCALE: the size of the proofs as a fraction of their full size. 1 if unset; less for a first look, more
 * for a longer search.
 */
export const proofScale = (env: NodeJS.ProcessEnv = process.env): number => {
  const text = env.PROOF_SCALE || '1'
  const scale = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (!(scale > 0 && scale <= MAX_SCALE)) {
    throw new Error(
      `PROOF_SCALE=${JSON.stringify(text)} is invalid. Set a fraction of the full size, more than 0 and at most ${MAX_SCALE}.`,
    )
  }
  return scale
}

/** Whether this run is one of proofs, at their full size: `pnpm prove`. */
export const isProof = process.env.TEST_TIER === 'proofs'

/**
 * A size of a test that is also a proof, such as the number of kills: `everyday` in an ordinary run, and under `pnpm prove`
 * `full` times PROOF_SCALE, never less than `everyday`.
 */
export const proofSize = (full: number, everyday = 1): number =>
  isProof ? Math.max(everyday, Math.round(full * proofScale())) : everyday

/** Prints the figures of a proof in one line, which `pnpm prove` collects into its summary. */
export const reportProof = (figures: string): void => {
  process.stdout.write(`proof: ${figures}\n`)
}
