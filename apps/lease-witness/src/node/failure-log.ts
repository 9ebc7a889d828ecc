type Report = (level: 'info' | 'error', msg: string, fields: object) => void

/**
 * Logs a failure that repeats until it is corrected: the first one, each one with another reason, and `recovered` once.
 */
export const createFailureLog = (msg: string, report: Report) => {
  let reported: string | null = null
  return {
    onError(error: unknown): void {
      const reason = String(error)
      if (reason !== reported) report('error', msg, { reason })
      reported = reason
    },
    onSuccess(): void {
      if (reported !== null) report('info', 'recovered', { after: msg })
      reported = null
    },
  }
}
