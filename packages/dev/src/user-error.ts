/** An error that the user can fix: the message says how, and the command prints it without a stack trace. */
export class UserError extends Error {
  override name = 'UserError'
}
