import * as z from 'zod'

// The policy of the page forbids code from text, which zod would try.
z.config({ jitless: true })
