/** A refusal of the API: the status and, where it documents one, its own code. */
export class Refused extends Error {
  constructor(status: string, text: string) {
    super(`${status}: ${text}`)
  }
}
