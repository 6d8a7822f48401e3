import PrismProtocol

/// The table "A namespace" of docs/configuration.md.
package enum NamespaceKeys {
  /// Every key of a namespace's file.
  package static let table: KeyTable<NamespaceDraft> = KeyTable(
    switches + limits + records + protection + access,
    defaults: NamespaceDraft(NamespaceConfiguration(name: .prism, monitorList: [])),
    elsewhere: {
      DaemonKeys.table.isGroup($0) || DaemonKeys.names.contains($0) ? "prismd.yaml, the daemon's own file" : nil
    })

  static let names = Set(table.keys.map(\.name))

  /// The default of `remote.allow`: "the switches and limits".
  static let remoteStandard = Set(table.keys.filter { $0.remote == .standard }.map(\.name))
  /// The same where answers are signed.
  static let remoteSigned = remoteStandard.union(table.keys.filter { $0.remote == .ifSigned }.map(\.name))
  static let remoteListable = Set(table.keys.filter { $0.remote != .never }.map(\.name))

  private typealias Key = ConfigurationKey<NamespaceDraft>

  private static let switches: [Key] = [
    Key(
      "url", .collectorURL, optional: \.value.url, remote: .ifListed,
      "the collector's base address, https or loopback (`allowPlain` of prismd.yaml permits plain http to other machines); without it rows are stored and not sent, and status says so"
    ),
    Key(
      "retired", .bool, at: \.isRetired, remote: .never,
      "takes the namespace away: its reports are refused, its rows stay until they expire; a missing file does not"),
    Key("isUpload", .bool, at: \.value.isUpload, remote: .standard, "the upload switch"),
    Key(
      "isGather", .bool, at: \.value.isGather, remote: .standard,
      "the gather switch: if it is off, every report is refused with `gather_off`"),
    Key(
      "isUpdateClear", .bool, at: \.value.isUpdateClear, remote: .ifSigned,
      "clear rows that were stored under another `appVersion`"),
    Key(
      "appVersion", .text(bytesMax: 128), optional: \.value.appVersion, remote: .ifListed,
      "the version of the app that reports; a change of it is an update. `auto`: `APP_VERSION` of each app's greeting"),
  ]

  private static let limits: [Key] = [
    Key(
      "maxBodyMByte", .mebibytes(1...3, raisedBy: .maxBody), at: \.value.maxBodyBytes, remote: .ifSigned,
      "the largest batch before compression; also the largest payload"),
    Key(
      "periodicTimerSecond", .seconds(1...30, raisedBy: .periodicTimer), at: \.value.uploadInterval, remote: .standard,
      "the time between timed uploads"),
    Key(
      "maxItem", .integer(1...1000, unit: "rows", raisedBy: .maxItem), at: \.value.maxItem, remote: .standard,
      "the most rows in one packet"),
    Key(
      "window", .integer(1...64, unit: "packets"), at: \.value.window, remote: .standard,
      "the most packets of one kind on their way at a time, to a receiver that takes several"),
    Key(
      "dictionary", .bool, at: \.value.dictionary, remote: .standard,
      "packets are packed with a dictionary that the collector makes of this namespace's packets"),
    Key(
      "maxFlowMByte", .mebibytes(1...100, raisedBy: .maxFlow), at: \.value.maxFlowBytes, remote: .standard,
      "the most bytes on metered networks in 24 h, in both directions"),
    Key(
      "expirationDay", .integer(1...30, unit: "days", raisedBy: .expiration), at: \.value.expirationDays,
      remote: .ifSigned, "the age at which a stored row is dropped"),
    Key("onlyWifi", .bool, at: \.value.onlyWifi, remote: .standard, "the default of the types' `onlyWifi`"),
    Key(
      "monitorList", .monitorList, at: \.types, default: "none; a list replaces `prism`'s five",
      remote: .standard,
      "the accepted types: `type`, `keep`, and `onlyWifi`, `isRealtime`, `isUploadPayload` (each false when left out, `onlyWifi` as above). Rules for its reports before they are stored: `redact`, `sample`, `sampleBy`, `perMinute`, `collapse`, `reduce`"
    ),
    Key(
      "maxStoreMByte", .mebibytes(1...65_536), at: \.value.maxStoreBytes, remote: .ifSigned,
      "the most bytes of rows that this namespace may hold"),
    Key(
      "maxUserMByte", .mebibytes(1...65_536), optional: \.value.maxUserBytes, default: "as the namespace",
      remote: .ifListed, "the most of it that one user may hold"),
    Key(
      "ring.maxMByte", .mebibytes(1...65_536), at: \.value.ring.bytes, remote: .ifSigned,
      "the most bytes of reports of types with `keep: ring`, beside `maxStoreMByte`; the oldest are overwritten"),
    Key(
      "ring.maxMemoryMByte", .mebibytes(1...4096), at: \.value.ring.memoryBytes, remote: .ifSigned,
      "the most bytes of reports of types with `keep: memory`; the oldest are overwritten"),
    Key(
      "ring.maxHour", .integer(1...8760, unit: "hours"), at: \.value.ring.hours, remote: .ifSigned,
      "the time after which such a report is overwritten at the latest, by the time that prism held it"),
    Key(
      "triggers", .triggers, at: \.value.triggers, default: "none", remote: .ifListed,
      "rules that let kept reports go when a report of a type comes, with a condition or a count; docs/recorder.md explains them"
    ),
    Key(
      "onFull", .choice, at: \.value.onFull, remote: .ifListed,
      "if the namespace is full: drop the oldest rows of the user who holds most (crashes last), or refuse new ones with `store_full`"
    ),
    Key(
      "onLargePayload", .choice, at: \.value.onLargePayload, remote: .ifListed,
      "if a payload is larger than `maxBodyMByte`: `refuse` the report with `payload_too_large`, or keep its `meta` alone (`PAYLOAD_LEFT_OUT`); an `appCrash` is always kept"
    ),
  ]

  private static let records: [Key] = [
    Key(
      "records", .recordTables, at: \.value.records, default: "none",
      "tables of records: `table`, `direction`, `scope`, `onConflict`, `onlyWifi`, `maxRecord`, `references`, `index`"
    ),
    Key(
      "enrich", .enrichments, at: \.value.enrichments, default: "none",
      "fields of the server's records that are added to reports as they come: `type`, `from`, `table`, `by`, `into`, `fields`"
    ),
    Key(
      "recordIntervalSecond", .seconds(1...86_400), at: \.value.recordInterval, remote: .standard,
      "the least time between synchronizations of records"),
    Key(
      "maxRecordItem", .integer(1...1000, unit: "operations"), at: \.value.maxRecordItem, remote: .standard,
      "the most operations on records in one packet"),
  ]

  private static let protection: [Key] = [
    Key("cipher", .choice, at: \.value.cipher, remote: .ifListed, "the cipher of the packets"),
    Key(
      "keyId", .keyID, optional: \.value.keyId, default: "the first of `keys`",
      "the id of the key in `keys` that encrypts; 16 bytes for aes-128, 32 for aes-256"),
    Key(
      "authorization.tokenFile", .tokenFile, optional: \.value.token,
      "a file with a bearer token, read again when it changes"),
    Key(
      "seal.publicKey", .sealingKey, optional: \.value.sealKey,
      "payloads are sealed to this key before they are stored, so that only the holder of its private key reads them (`prismctl keys new --seal` makes both)"
    ),
    Key("tls.caFile", .certificates, optional: \.value.tls.caFile, default: "the system's", "a private CA, PEM"),
    Key("tls.certFile", .certificates, optional: \.value.tls.certFile, "a client certificate, PEM"),
    Key("tls.keyFile", .privateKey, optional: \.value.tls.keyFile, "the client certificate's key, PEM"),
  ]

  private static let access: [Key] = [
    Key(
      "allow.users", .set(of: .userAccount, "a list of users, at least one"), optional: \.allowedUsers,
      default: "everyone", "the users who may report, by the socket's peer credentials"),
    Key(
      "allow.groups", .set(of: .groupAccount, "a list of groups, at least one"), optional: \.allowedGroups,
      default: "everyone",
      "the groups whose members may report; one of `allow.users`, `allow.groups` and `allow.units` is enough"),
    Key(
      "allow.units", .set(of: .unitPattern, "a list of systemd units, at least one"), optional: \.allowedUnits,
      default: "everyone", "systemd units whose processes may report; `*` is any text, `?` any character"),
    Key(
      "receipt", .choice, at: \.value.receipt, remote: .ifListed,
      "`required`: an accepted packet must be answered with its receipt; `optional`: any 2xx is enough, for a foreign collector"
    ),
    Key(
      "trustRefusals", .bool, at: \.value.trustsRefusals,
      "a 400, 410, 413, 415 or 422 without the collector's proof makes dead letters, also if a proxy answers it: for a receiver of one's own that makes no proofs"
    ),
    Key(
      "meteredIntervalSecond", .seconds(0...3600), at: \.value.meteredInterval, remote: .standard,
      "the least time between uploads on metered networks; requests within it are merged"),
  ]
}

extension Ceiling {
  static let maxBody = Ceiling(name: "limits.maxBodyMByte", path: \.maxBodyMByte)
  static let periodicTimer = Ceiling(name: "limits.periodicTimerSecond", path: \.periodicTimerSecond)
  static let maxItem = Ceiling(name: "limits.maxItem", path: \.maxItem)
  static let maxFlow = Ceiling(name: "limits.maxFlowMByte", path: \.maxFlowMByte)
  static let expiration = Ceiling(name: "limits.expirationDay", path: \.expirationDay)
}
