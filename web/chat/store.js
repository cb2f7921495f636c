/**
 * What survives a reload: the guest's identity, and the conversation with its events and unsent messages.
 *
 * Events are kept because the log alone does not hold the customer's own words. A browser that refuses storage
 * (private window, quota) costs only that: the page goes on in memory.
 */

const PREFIX = "turngate.chat";
const MOST_EVENTS = 500;

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** A conversation that nobody has opened yet. `sent` are the customer's messages; those not `acknowledged` are the outbox. */
export function emptyRecord() {
  return { opening: null, conversation_id: null, base_seq: 0, events: [], sent: [] };
}

function isRecord(value) {
  return value !== null && Array.isArray(value?.events) && Array.isArray(value?.sent) && Number.isInteger(value?.base_seq);
}

export class Store {
  constructor(account) {
    this.guestKey = `${PREFIX}.${account}.guest`;
    this.recordKey = `${PREFIX}.${account}.conversation`;
  }

  loadGuest() {
    return read(this.guestKey);
  }

  saveGuest(guest) {
    write(this.guestKey, guest);
  }

  loadRecord() {
    const record = read(this.recordKey);
    return isRecord(record) ? record : emptyRecord();
  }

  /** Keeps the newest events and messages; `base_seq` says after which seq the kept events begin. */
  saveRecord(record) {
    trim(record);
    if (write(this.recordKey, record)) return;
    const outbox = record.sent.filter((entry) => !entry.acknowledged);
    write(this.recordKey, { ...record, base_seq: lastSeq(record), events: [], sent: outbox });
  }
}

/** The seq of the newest event a record holds. */
export function lastSeq(record) {
  return record.events.at(-1)?.seq ?? record.base_seq;
}

/** Drop the oldest events, and the words of the messages that they accepted: they have no place in the log any more. */
function trim(record) {
  if (record.events.length <= MOST_EVENTS) return;
  const dropped = record.events.splice(0, record.events.length - MOST_EVENTS);
  record.base_seq = dropped.at(-1).seq;
  const gone = new Set(dropped.map((event) => event.data.client_message_id).filter(Boolean));
  record.sent = record.sent.filter((entry) => !entry.acknowledged || !gone.has(entry.client_message_id));
}

const LANGUAGE_KEY = `${PREFIX}.language`;

export function loadLanguage() {
  return read(LANGUAGE_KEY);
}

export function saveLanguage(language) {
  write(LANGUAGE_KEY, language);
}
