import postgres from 'postgres'

/** Whether a statement violated this unique constraint or index (SQLSTATE 23505). */
export const isUniqueViolation = (error: unknown, constraint: string): boolean =>
  error instanceof postgres.PostgresError && error.code === '23505' && error.constraint_name === constraint
