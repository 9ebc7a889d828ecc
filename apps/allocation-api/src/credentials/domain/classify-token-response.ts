import { accepted, rejected, unavailable, type Verdict } from './result.ts'

/** What the status of a read says of the token that was sent with it. `provider`: its configured name. */
export const tokenVerdictOf = (provider: string, status: number): Verdict => {
  if (status >= 200 && status < 300) return accepted(`${provider} accepts this token.`)
  if (status === 401 || status === 403) {
    return rejected(`${provider} refuses this token. Is it complete, and may it read?`)
  }
  if (status === 429) return unavailable(`${provider} asks for fewer requests. Try again later.`)
  if (status >= 300 && status < 400) {
    return unavailable(`${provider} answered with a redirect, which is never followed with a token.`)
  }
  return unavailable(`${provider} did not say whether the token is good (status ${status}). Try again later.`)
}
