/** What a sign says: all well, look here, wrong, not possible, waiting, not there, unknown. */
export type Sign = 'good' | 'warn' | 'bad' | 'refused' | 'waiting' | 'off' | 'none';
