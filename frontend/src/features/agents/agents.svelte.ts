// The agent CLIs of this computer: found, connected, and the change that
// connecting one makes. What is shown is what is consented to, by its digest.

import { api, type AgentChange, type AgentFound, type Agents, type AgentStanding } from '../../lib/api';
import { Loaded } from '../../lib/loaded.svelte';
import type { Sign } from '../../ui/signs';

/** What is done to an agent: first its change is shown, then it is made. */
export interface Change {
  agent: AgentFound;
  does: 'connect' | 'disconnect';
  /** Whether its sessions may start agents without a question; undefined leaves that as it is. */
  jobs?: boolean | undefined;
  /** Null while it is worked out. */
  shown: AgentChange | null;
  problem: string;
  /** It is being made. */
  making: boolean;
}

class AgentsHere {
  readonly found = new Loaded<Agents>();
  readonly connected = new Loaded<{ agents: AgentStanding[] }>();
  /** The change that is looked at, else null. */
  change: Change | null = $state(null);
  /** What was done last, in a sentence. */
  done = $state('');

  get list(): AgentFound[] | null {
    return this.found.value?.agents ?? null;
  }

  async load(): Promise<void> {
    await this.found.load(api.agents);
  }

  /** Whether sessions of kind may start agents without a question; null where that is not known. */
  startsAgents(kind: string): boolean | null {
    return this.connected.value?.agents.find((agent) => agent.kind === kind)?.jobs ?? null;
  }

  /** Works the change out and shows it. */
  async look(agent: AgentFound, does: Change['does'], jobs?: boolean): Promise<void> {
    this.done = '';
    this.change = { agent, does, jobs, shown: null, problem: '', making: false };
    const { change } = this;
    try {
      change.shown = await api.changeAgent(agent.kind, does, jobs);
    } catch (error) {
      change.problem = sentenceOf(error);
    }
  }

  leave(): void {
    this.change = null;
  }

  /** Makes exactly the change that is shown. */
  async make(): Promise<void> {
    const { change } = this;
    if (change?.shown == null || change.making) return;
    change.making = true;
    change.problem = '';
    try {
      await api.changeAgent(change.agent.kind, change.does, change.jobs, change.shown.digest);
      this.done = doneWords(change);
      if (this.change === change) this.change = null;
    } catch (error) {
      change.problem = sentenceOf(error);
      change.making = false;
    }
    await this.load();
  }
}

function doneWords({ agent, does, jobs }: Change): string {
  if (does === 'disconnect') return `${agent.kind} is disconnected. Your messages and decisions are kept.`;
  const again = 'Sessions that run already need a restart.';
  if (jobs === true) return `Sessions of ${agent.kind} may start agents without asking you. ${again}`;
  if (jobs === false) return `${agent.kind} asks you before its sessions start agents. ${again}`;
  return `${agent.kind} is connected. ${again}`;
}

function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export const agents = new AgentsHere();

/** The state of an agent as sign and word. */
export function agentState(agent: AgentFound): {
  sign: Sign;
  word: string;
  sort: 'good' | 'warn' | 'soft';
} {
  if (agent.refused !== '') return { sign: 'warn', word: 'unknown version', sort: 'warn' };
  if (agent.connected && agent.missing.length > 0) return { sign: 'warn', word: 'incomplete', sort: 'warn' };
  if (agent.connected) return { sign: 'good', word: 'connected', sort: 'good' };
  return agent.found
    ? { sign: 'off', word: 'not connected', sort: 'soft' }
    : { sign: 'none', word: 'not found', sort: 'soft' };
}
