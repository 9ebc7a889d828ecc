import { startReplicas, startWitness } from '@pool/test-kit/services.ts'
import { describeRaces } from '../process/support/race.ts'
import { createTestDatabase } from './support/database.ts'

describeRaces('concurrent writers on two replicas', async () => {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await createTestDatabase({ schema: false, connections: 1 }))
  const { replicas } = stack.use(await startReplicas(2, () => startWitness(url)))
  const resources = stack.move()
  return { ports: replicas.map(({ port }) => port), [Symbol.asyncDispose]: () => resources.disposeAsync() }
})
