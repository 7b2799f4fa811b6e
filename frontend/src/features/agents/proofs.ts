// What came of trying the routes into a version of an agent, in words.

import type { AgentProof } from '../../lib/api';

export interface ProofWords {
  first: string;
  /** A sentence for each broken route. */
  more: string[];
  isGood: boolean;
}

/** Says which version Bridge tried and what came of it. */
export function proofWords({ version, problem, broken }: AgentProof): ProofWords {
  const tried = version === '' ? '' : ` version ${version}`;
  if (problem !== '')
    return { first: `Bridge could not try${tried}: ${problem.replace(/\.$/, '')}.`, more: [], isGood: false };
  if (broken.length > 0)
    return { first: `Bridge tried${tried}: not all routes work.`, more: broken, isGood: false };
  return { first: `Bridge tried${tried}: all routes work.`, more: [], isGood: true };
}
