import { describeRaces } from '../process/support/race.ts'
import { createTestDatabase } from './support/database.ts'
import { startReplicas } from './support/replica.ts'

describeRaces('concurrent writers on two replicas', async () => {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await createTestDatabase({ schema: false, connections: 1 }))
  const { ports } = stack.use(await startReplicas(url))
  const resources = stack.move()
  return { ports, [Symbol.asyncDispose]: () => resources.disposeAsync() }
})
