import { ALL_VIEWS } from '../support/views.ts'
import { testConsole } from '../tasks/all.ts'

// Every state from 320 to 2,560 pixels, at 200 % zoom, light and dark.

await testConsole(ALL_VIEWS)
