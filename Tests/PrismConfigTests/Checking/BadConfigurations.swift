/// A configuration with faults, and the lines in which they are shown.
struct BadConfiguration: Sendable, CustomStringConvertible {
  let description: String
  let file: String
  let text: String
  let lines: [String]

  init(_ description: String, _ file: String, _ text: String, _ lines: [String]) {
    (self.description, self.file, self.text, self.lines) = (description, file, text, lines)
  }

  static let daemon: [BadConfiguration] = [
    BadConfiguration(
      "a tab cannot indent", "prismd.yaml", "ingest:\n\tsocket: /tmp/s\n",
      ["prismd.yaml:2: YAML: column 1: a tab cannot indent YAML; write spaces"]),
    BadConfiguration(
      "a key needs its colon", "prismd.yaml", "state: /tmp/a\ndurability\nlog:\n  level: info\n",
      ["prismd.yaml:2: YAML: column 1: a key has no colon; write `key: value`, with a space after the colon"]),
    BadConfiguration(
      "a quote must be closed", "prismd.yaml", "state: \"/tmp/a\nlog: {}\n",
      ["prismd.yaml:1: YAML: column 8: a quote is not closed; write it again at the end of the value"]),
    BadConfiguration(
      "a bracket must be closed", "prismd.yaml", "keys: [\n",
      ["prismd.yaml:2: YAML: column 1: a value is missing; close a list with `]`, a map in braces with `}`"]),
    BadConfiguration(
      "an unknown escape", "prismd.yaml", "state: \"\\q\"\n",
      [
        "prismd.yaml:1: YAML: column 9: no escape of double quotes is written so; in single quotes a backslash is an ordinary character"
      ]),
    BadConfiguration(
      "wrong indentation", "prismd.yaml", "ingest:\n  socket: /tmp/a\n mode: 0600\n",
      [
        "prismd.yaml:3: YAML: column 2: no key can begin here; keys of one map begin in the same column, and nothing follows a closing quote or bracket"
      ]),
    BadConfiguration(
      "a key occurs twice", "prismd.yaml", "state: /tmp/a\nstate: /tmp/b\n",
      ["prismd.yaml:2: YAML: the key state occurs twice; it is on line 1 already"]),
    BadConfiguration(
      "a billion laughs", "prismd.yaml", "a: &a [lol, lol]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\n",
      [
        "prismd.yaml:1: YAML: an anchor (&name) is not taken; write the value alone", "prismd.yaml:1: a: is unknown",
        "prismd.yaml:2: YAML: an alias (*name) is not taken; write the value itself",
        "prismd.yaml:2: YAML: an alias (*name) is not taken; write the value itself",
        "prismd.yaml:2: YAML: an anchor (&name) is not taken; write the value alone", "prismd.yaml:2: b: is unknown",
        "prismd.yaml:3: YAML: an alias (*name) is not taken; write the value itself",
        "prismd.yaml:3: YAML: an alias (*name) is not taken; write the value itself",
        "prismd.yaml:3: YAML: an anchor (&name) is not taken; write the value alone", "prismd.yaml:3: c: is unknown",
        "prismd.yaml:4: YAML: an alias (*name) is not taken; write the value itself",
        "prismd.yaml:4: YAML: an alias (*name) is not taken; write the value itself",
        "prismd.yaml:4: YAML: an anchor (&name) is not taken; write the value alone", "prismd.yaml:4: d: is unknown",
      ]),
    BadConfiguration(
      "a merge key", "prismd.yaml", "log:\n  <<: {level: info}\n",
      ["prismd.yaml:2: YAML: a merge key (<<) is not taken; write the keys themselves"]),
    BadConfiguration(
      "a tag", "prismd.yaml", "state: !!str /tmp/a\n",
      ["prismd.yaml:1: YAML: a tag (!name) is not taken; write the value alone"]),
    BadConfiguration(
      "a custom tag on a map", "prismd.yaml", "log: !local {level: info}\n",
      ["prismd.yaml:1: YAML: a tag (!name) is not taken; write the value alone"]),
    BadConfiguration(
      "two documents", "prismd.yaml", "state: /tmp/a\n---\nstate: /tmp/b\n",
      ["prismd.yaml:2: YAML: a second document begins; write everything into one"]),
    BadConfiguration(
      "a list as a key", "prismd.yaml", "[a, b]: 1\n", ["prismd.yaml:1: YAML: a list or a map cannot be a key"]),
    BadConfiguration(
      "nested too deep", "prismd.yaml",
      "a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
      ["prismd.yaml:1: YAML: is nested over 32 levels deep"]),
    BadConfiguration(
      "a list instead of a map", "prismd.yaml", "- state\n- log\n",
      ["prismd.yaml:1: file: is a list, must be a map of keys"]),
    BadConfiguration(
      "a word instead of a map", "prismd.yaml", "prism\n", ["prismd.yaml:1: file: is one value, must be a map of keys"]),
    BadConfiguration(
      "a group that is a word", "prismd.yaml", "log: debug\n", ["prismd.yaml:1: log: is debug, must be a map of keys"]),
    BadConfiguration(
      "a group that is a list", "prismd.yaml", "log: [debug]\n",
      ["prismd.yaml:1: log: is a list, must be a map of keys"]),
    BadConfiguration(
      "an unknown key with a near one", "prismd.yaml", "durabilty: full\n",
      ["prismd.yaml:1: durabilty: is unknown; did you mean durability?"]),
    BadConfiguration(
      "an unknown key in a group", "prismd.yaml", "log:\n  levle: info\n",
      ["prismd.yaml:2: log.levle: is unknown; did you mean log.level?"]),
    BadConfiguration(
      "an unknown key with nothing near", "prismd.yaml", "log:\n  colour: red\n",
      ["prismd.yaml:2: log.colour: is unknown; known are log.level, log.format"]),
    BadConfiguration(
      "a key of a group at the top", "prismd.yaml", "socket: /tmp/s\n",
      ["prismd.yaml:1: socket: is unknown; did you mean ingest.socket?"]),
    BadConfiguration(
      "a dotted key", "prismd.yaml", "log.level: info\n",
      ["prismd.yaml:1: log.level: is unknown as one word; write log: and below it level:"]),
    BadConfiguration(
      "a namespace's key in the daemon's file", "prismd.yaml", "maxItem: 10\n",
      ["prismd.yaml:1: maxItem: belongs in a namespace's file, namespaces.d/prism.yaml for the built-in one"]),
    BadConfiguration(
      "a namespace's group in the daemon's file", "prismd.yaml", "tls: {caFile: cert.pem}\n",
      ["prismd.yaml:1: tls: belongs in a namespace's file, namespaces.d/prism.yaml for the built-in one"]),
    BadConfiguration(
      "an unset variable", "prismd.yaml", "state: ${NOWHERE}/prism\n",
      ["prismd.yaml:1: state: has ${NOWHERE}, which the environment does not set; set it or write ${NOWHERE:-other}"]),
    BadConfiguration(
      "a variable without its brace", "prismd.yaml", "state: ${HOME\n",
      ["prismd.yaml:1: state: has a ${ without its }; write $$ for a dollar"]),
    BadConfiguration(
      "a variable within a variable's fallback", "prismd.yaml", "state: ${MANY:-${HOME}/x}\n",
      [
        "prismd.yaml:1: state: has a ${ within ${MANY:-…}, which is not taken; the fallback is plain text up to the }"
      ]),
    BadConfiguration(
      "UTF-16 without its mark", "prismd.yaml", "l\0o\0g\0:\0 \0{\0}\0\n\0",
      ["prismd.yaml:1: YAML: has a NUL byte, as in UTF-16; save the file as UTF-8 text"]),
    BadConfiguration(
      "a NUL further on", "prismd.yaml", "log: {}\nstate: /a\0b\n",
      ["prismd.yaml:2: YAML: has a NUL byte, as in UTF-16; save the file as UTF-8 text"]),
    BadConfiguration(
      "a shell's word for home", "prismd.yaml", "state: ~/prism\n",
      ["prismd.yaml:1: state: is ~/prism, but a ~ is an ordinary character; write ${HOME} for your home"]),
    BadConfiguration(
      "a group in another case", "prismd.yaml", "Log: {level: info}\n",
      ["prismd.yaml:1: Log: is unknown; did you mean log?"]),
    BadConfiguration(
      "a path of another system in double quotes", "prismd.yaml", "log: {}\nstate: \"C:\\prism\"\n",
      [
        "prismd.yaml:2: YAML: column 11: no escape of double quotes is written so; in single quotes a backslash is an ordinary character"
      ]),
    BadConfiguration(
      "a number in octal, as YAML 1.1 took it", "prismd.yaml", "ingest: {maxConnections: 0100}\n",
      [
        "prismd.yaml:1: ingest.maxConnections: is 0100, must be a whole number, 1...65536; a leading zero means octal elsewhere, write it without"
      ]),
    BadConfiguration(
      "a variable that cannot be one", "prismd.yaml", "state: ${9LIVES}\n",
      ["prismd.yaml:1: state: has ${9LIVES}, which names no environment variable: A-Z a-z 0-9 _"]),
    BadConfiguration(
      "a mode that is no mode", "prismd.yaml", "ingest: {mode: 0999}\n",
      ["prismd.yaml:1: ingest.mode: is 0999, must be an octal file mode, 0600...0777"]),
    BadConfiguration(
      "a mode the daemon could not use", "prismd.yaml", "ingest: {mode: 0066}\n",
      ["prismd.yaml:1: ingest.mode: is 0066, must be an octal file mode, 0600...0777"]),
    BadConfiguration(
      "a group that does not exist", "prismd.yaml", "control: {group: nosuchgroup}\n",
      ["prismd.yaml:1: control.group: is nosuchgroup, must be a group of this system, by name or number"]),
    BadConfiguration(
      "a socket path too long", "prismd.yaml",
      "control: {socket: /sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss}\n",
      [
        "prismd.yaml:1: control.socket: is /ssssssssssssssssssssssssssssssssssssssssssssssssssssssss..., must be a path of at most 107 bytes"
      ]),
    BadConfiguration(
      "a ceiling too high", "prismd.yaml", "limits: {maxItem: 10001}\n",
      ["prismd.yaml:1: limits.maxItem: is 10001, must be 1000...10000"]),
    BadConfiguration(
      "a ceiling too low", "prismd.yaml", "limits: {maxBodyMByte: 2}\n",
      ["prismd.yaml:1: limits.maxBodyMByte: is 2, must be 3...64"]),
    BadConfiguration(
      "a device id with a space", "prismd.yaml", "device: {id: my box}\n",
      ["prismd.yaml:1: device.id: is my box, must be 1 to 128 visible ASCII characters"]),
    BadConfiguration(
      "a common value that is a map", "prismd.yaml", "common: {region: {a: b}}\n",
      ["prismd.yaml:1: common.region: is a map, must be text of 1 to 1024 bytes without control characters"]),
    BadConfiguration(
      "a common key with a space", "prismd.yaml", "common: {\"my region\": eu}\n",
      [
        "prismd.yaml:1: common.my region: is no name of an entry, must be 1 to 128 visible ASCII characters, and not MONITOR_TYPE, REPORT_ID, IS_BIZ, CREATE_TIME"
      ]),
    BadConfiguration(
      "a common key that is a row's own", "prismd.yaml", "common: {IS_BIZ: x}\n",
      [
        "prismd.yaml:1: common.IS_BIZ: is no name of an entry, must be 1 to 128 visible ASCII characters, and not MONITOR_TYPE, REPORT_ID, IS_BIZ, CREATE_TIME"
      ]),
    BadConfiguration(
      "keys that are a map", "prismd.yaml", "keys: {id: k1, file: k1.key}\n",
      ["prismd.yaml:1: keys: is a map, must be a list of keys like {id: main, file: main.key}"]),
    BadConfiguration(
      "a key without a file", "prismd.yaml", "keys:\n  - id: k1\n",
      ["prismd.yaml:2: keys[0].file: is missing, must be the path of a key file"]),
    BadConfiguration(
      "a key file that is missing", "prismd.yaml", "keys:\n  - {id: k2, file: k2.key}\n",
      ["prismd.yaml:2: keys[0].file: names k2.key (looked for in .): No such file or directory"]),
    BadConfiguration(
      "a key file readable by others", "prismd.yaml", "keys:\n  - {id: k2, file: open.key}\n",
      [
        "prismd.yaml:2: keys[0].file: names open.key: is readable by others; chmod 600 it, and make a new key if others were on this machine"
      ]),
    BadConfiguration(
      "a key file that holds no key", "prismd.yaml", "keys:\n  - {id: k2, file: bad.key}\n",
      [
        "prismd.yaml:2: keys[0].file: names bad.key: must hold 32 or 64 hexadecimal digits and nothing else; prismctl keys new makes such a file"
      ]),
    BadConfiguration(
      "digits where the key file belongs", "prismd.yaml",
      "keys:\n  - {id: k2, file: 00112233445566778899aabbccddeeff}\n",
      ["prismd.yaml:2: keys[0].file: must be the path of a key file"]),
    BadConfiguration(
      "a key id twice", "prismd.yaml", "keys:\n  - {id: k1, file: k1.key}\n  - {id: k1, file: k1.key}\n",
      ["prismd.yaml:3: keys[1].id: is k1, which an earlier key has already"]),
    BadConfiguration(
      "an unknown network class", "prismd.yaml", "network:\n  interfaces: {\"wlan*\": metred}\n",
      [
        "prismd.yaml:2: network.interfaces.wlan*: is metred, must be metered, unmetered or ignored; did you mean metered?"
      ]),
    BadConfiguration(
      "ignored as the default network", "prismd.yaml", "network: {default: ignored}\n",
      ["prismd.yaml:1: network.default: is ignored, must be unmetered or metered"]),
    BadConfiguration(
      "one path for both sockets", "prismd.yaml",
      "ingest: {socket: /run/a.sock}\ncontrol: {socket: /run/./x/..//a.sock}\n",
      ["prismd.yaml:2: control.socket: is /run/./x/..//a.sock, where ingest.socket listens, too; give each its own"]),
    BadConfiguration(
      "the control socket's path for ingest", "prismd.yaml", "ingest: {socket: /run/prism/control.sock}\n",
      ["prismd.yaml:1: ingest.socket: is /run/prism/control.sock, where control.socket listens, too; give each its own"]
    ),
    BadConfiguration(
      "plain http to another machine", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nurl: http://collector.example.com\n",
      [
        "namespaces.d/shop.yaml:2: url: is http://collector.example.com, must be https:// or loopback; allowPlain: true in prismd.yaml permits http"
      ]),
    BadConfiguration(
      "a namespace that permits plain http itself", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nallowPlain: true\n",
      ["namespaces.d/shop.yaml:2: allowPlain: belongs in prismd.yaml, the daemon's own file"]),
    BadConfiguration(
      "remote configuration without encryption", "prismd.yaml", "remote: {url: \"http://config.example.com\"}\n",
      [
        "prismd.yaml:1: remote.url: is \"http://config.example.com\", must be https://, or http:// to loopback, with no user, query or fragment"
      ]),
    BadConfiguration(
      "a remote key that can never be set", "prismd.yaml", "remote: {allow: [tls]}\n",
      ["prismd.yaml:1: remote.allow[0]: is tls, which can never be set remotely"]),
    BadConfiguration(
      "an unknown remote key", "prismd.yaml", "remote: {allow: [maxItems]}\n",
      [
        "prismd.yaml:1: remote.allow[0]: is maxItems, must be a namespace's key that may be set remotely; did you mean maxItem?"
      ]),
    BadConfiguration(
      "a text that is no public key", "prismd.yaml", "remote: {publicKey: abc}\n",
      ["prismd.yaml:1: remote.publicKey: must be an Ed25519 public key: 32 bytes as base64, or 64 hexadecimal digits"]),
    BadConfiguration(
      "a listener that is no address", "prismd.yaml", "metrics: {listen: example.com:80}\n",
      [
        "prismd.yaml:1: metrics.listen: is example.com:80, must be ADDRESS:PORT, [ADDRESS]:PORT for IPv6, or a PORT on loopback"
      ]),
    BadConfiguration(
      "an unknown log level", "prismd.yaml", "log: {level: warn}\n",
      ["prismd.yaml:1: log.level: is warn, must be debug, info, warning or error; did you mean warning?"]),
  ]

  static let namespace: [BadConfiguration] = [
    BadConfiguration(
      "no as a boolean", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nisUpload: no\n",
      ["namespaces.d/shop.yaml:2: isUpload: is no, must be true or false; write false"]),
    BadConfiguration(
      "Yes as a boolean", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nisGather: Yes\n",
      ["namespaces.d/shop.yaml:2: isGather: is Yes, must be true or false; write true"]),
    BadConfiguration(
      "a quoted boolean", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nisUpload: \"true\"\n",
      ["namespaces.d/shop.yaml:2: isUpload: is \"true\", must be true or false; write true without quotes"]),
    BadConfiguration(
      "True in capitals", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nisUpload: True\n",
      ["namespaces.d/shop.yaml:2: isUpload: is True, must be true or false; write true"]),
    BadConfiguration(
      "a number as a boolean", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nisUpload: 1\n",
      ["namespaces.d/shop.yaml:2: isUpload: is 1, must be true or false; write true"]),
    BadConfiguration(
      "a list as a boolean", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nisUpload: [true]\n",
      ["namespaces.d/shop.yaml:2: isUpload: is a list, must be true or false"]),
    BadConfiguration(
      "a number over its range", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nperiodicTimerSecond: 31\n",
      [
        "namespaces.d/shop.yaml:2: periodicTimerSecond: is 31, must be 1...30; limits.periodicTimerSecond of prismd.yaml may raise the upper end to 3600"
      ]),
    BadConfiguration(
      "a number under its range", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nmaxItem: 0\n",
      ["namespaces.d/shop.yaml:2: maxItem: is 0, must be 1...1000"]),
    BadConfiguration(
      "a negative number", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nexpirationDay: -1\n",
      ["namespaces.d/shop.yaml:2: expirationDay: is -1, must be 1...30"]),
    BadConfiguration(
      "a decimal number", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nmaxBodyMByte: 1.5\n",
      ["namespaces.d/shop.yaml:2: maxBodyMByte: is 1.5, must be a whole number, 1...3"]),
    BadConfiguration(
      "an octal-looking number", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nmaxItem: 010\n",
      [
        "namespaces.d/shop.yaml:2: maxItem: is 010, must be a whole number, 1...1000; a leading zero means octal elsewhere, write it without"
      ]),
    BadConfiguration(
      "a hexadecimal number", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nmaxItem: 0x10\n",
      ["namespaces.d/shop.yaml:2: maxItem: is 0x10, must be a whole number, 1...1000"]),
    BadConfiguration(
      "a number beyond 64 bits", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nmaxItem: 99999999999999999999\n",
      ["namespaces.d/shop.yaml:2: maxItem: is 99999999999999999999, must be 1...1000"]),
    BadConfiguration(
      "a number with a unit", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nmaxStoreMByte: 256MB\n",
      ["namespaces.d/shop.yaml:2: maxStoreMByte: is 256MB, must be a whole number, 1...65536"]),
    BadConfiguration(
      "a quoted number", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nmaxItem: \"10\"\n",
      ["namespaces.d/shop.yaml:2: maxItem: is \"10\", must be a whole number, 1...1000; write it without quotes"]),
    BadConfiguration(
      "a word as a number", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nmeteredIntervalSecond: never\n",
      ["namespaces.d/shop.yaml:2: meteredIntervalSecond: is never, must be a whole number, 0...3600"]),
    BadConfiguration(
      "a key without a value", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nmaxItem:\n",
      ["namespaces.d/shop.yaml:2: maxItem: has no value, must be 1...1000; leave the key out for its default"]),
    BadConfiguration(
      "an unknown choice with a near one", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nonFull: evictoldest\n",
      ["namespaces.d/shop.yaml:2: onFull: is evictoldest, must be evictOldest or refuse; did you mean evictOldest?"]),
    BadConfiguration(
      "an unknown cipher", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\ncipher: aes-128-ecb\n",
      [
        "namespaces.d/shop.yaml:2: cipher: is aes-128-ecb, must be aes-128-gcm, aes-256-gcm or aes-128-cbc; did you mean aes-128-gcm?"
      ]),
    BadConfiguration(
      "a boolean as a string", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nappVersion: true\n",
      [
        "namespaces.d/shop.yaml:2: appVersion: is true, a boolean, must be text of 1 to 128 bytes without control characters; write it in quotes"
      ]),
    BadConfiguration(
      "a url of another scheme", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nurl: ftp://collector.example.com\n",
      [
        "namespaces.d/shop.yaml:2: url: is ftp://collector.example.com, must be http:// or https://, a host, and a path at most (no user, query or fragment)"
      ]),
    BadConfiguration(
      "a url with a password", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nurl: https://me:hunter2@collector.example.com\n",
      [
        "namespaces.d/shop.yaml:2: url: must be http:// or https://, a host, and a path at most (no user, query or fragment)"
      ]),
    BadConfiguration(
      "a url with a query", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nurl: https://collector.example.com/?a=b\n",
      [
        "namespaces.d/shop.yaml:2: url: must be http:// or https://, a host, and a path at most (no user, query or fragment)"
      ]),
    BadConfiguration(
      "a url without a host", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nurl: https:///path\n",
      [
        "namespaces.d/shop.yaml:2: url: is https:///path, must be http:// or https://, a host, and a path at most (no user, query or fragment)"
      ]),
    BadConfiguration(
      "a url with an invalid port", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nurl: https://h:70000\n",
      [
        "namespaces.d/shop.yaml:2: url: is https://h:70000, must be http:// or https://, a host, and a path at most (no user, query or fragment)"
      ]),
    BadConfiguration(
      "an unknown key id", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nurl: https://h\nkeyId: k9\n",
      ["namespaces.d/shop.yaml:3: keyId: is k9, must be the id of one of the keys in prismd.yaml: k1"]),
    BadConfiguration(
      "a key of the wrong length", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nurl: https://h\ncipher: aes-256-gcm\n",
      ["namespaces.d/shop.yaml:3: keyId: is k1, a key of 16 bytes, must be one of 32 for aes-256-gcm"]),
    BadConfiguration(
      "no monitor list", "namespaces.d/shop.yaml", "url: https://h\n",
      [
        "namespaces.d/shop.yaml:1: monitorList: is missing, must list at least one type; for example monitorList: [{type: order}]"
      ]),
    BadConfiguration(
      "an empty monitor list", "namespaces.d/shop.yaml", "monitorList: []\n",
      ["namespaces.d/shop.yaml:1: monitorList: is empty, must be a list of types, at least one"]),
    BadConfiguration(
      "a monitor list that is a word", "namespaces.d/shop.yaml", "monitorList: order\n",
      ["namespaces.d/shop.yaml:1: monitorList: is order, must be a list of types, at least one"]),
    BadConfiguration(
      "a type without its name", "namespaces.d/shop.yaml", "monitorList:\n  - isRealtime: true\n",
      [
        "namespaces.d/shop.yaml:2: monitorList[0].type: is missing, must be a type's name: 1 to 128 of A-Z a-z 0-9 _ . : -, the first a letter or digit; or a pattern with * and ?"
      ]),
    BadConfiguration(
      "a type that is no map", "namespaces.d/shop.yaml", "monitorList:\n  - order\n",
      ["namespaces.d/shop.yaml:2: monitorList[0]: is order, must be a map like {type: order}"]),
    BadConfiguration(
      "a type with a bad name", "namespaces.d/shop.yaml", "monitorList:\n  - type: a b\n",
      [
        "namespaces.d/shop.yaml:2: monitorList[0].type: is a b, must be a type's name: 1 to 128 of A-Z a-z 0-9 _ . : -, the first a letter or digit; or a pattern with * and ?"
      ]),
    sealing("a sealing key that is too short", "AAEC"),
    sealing("a sealing key whose secrets are known", "7P///////////////////////////////////////38="),
    BadConfiguration(
      "a type twice", "namespaces.d/shop.yaml", "monitorList:\n  - type: order\n  - type: net\n  - type: order\n",
      ["namespaces.d/shop.yaml:4: monitorList[2].type: is order, which monitorList[0] has already"]),
    BadConfiguration(
      "an unknown key of a type", "namespaces.d/shop.yaml", "monitorList:\n  - type: order\n    isRealTimes: true\n",
      ["namespaces.d/shop.yaml:3: monitorList[0].isRealTimes: is unknown; did you mean isRealtime?"]),
    BadConfiguration(
      "a missing token file", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nauthorization:\n  tokenFile: /nonexistent/token\n",
      ["namespaces.d/shop.yaml:3: authorization.tokenFile: names a file that cannot be read: No such file or directory"]
    ),
    BadConfiguration(
      "a missing CA", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\ntls:\n  caFile: /nonexistent/ca.pem\n",
      ["namespaces.d/shop.yaml:3: tls.caFile: is /nonexistent/ca.pem, which cannot be read: No such file or directory"]),
    BadConfiguration(
      "a certificate without its key", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\ntls: {certFile: cert.pem}\n",
      ["namespaces.d/shop.yaml:2: tls.keyFile: is missing; a client certificate needs it beside tls.certFile"]),
    BadConfiguration(
      "an unreadable certificate beside its key", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\ntls: {certFile: none.pem, keyFile: key.pem}\n",
      [
        "namespaces.d/shop.yaml:2: tls.certFile: is none.pem, which cannot be read in . or in namespaces.d: No such file or directory"
      ]),
    BadConfiguration(
      "an unknown cipher for a key that would not fit", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nurl: https://h\ncipher: aes\n",
      [
        "namespaces.d/shop.yaml:3: cipher: is aes, must be aes-128-gcm, aes-256-gcm or aes-128-cbc; did you mean aes-128-gcm?"
      ]),
    BadConfiguration(
      "a user that does not exist", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nallow: {users: [nosuchuser]}\n",
      ["namespaces.d/shop.yaml:2: allow.users[0]: is nosuchuser, must be a user of this system, by name or number"]),
    BadConfiguration(
      "a unit that can't be", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nallow: {units: [shop/a.service]}\n",
      [
        "namespaces.d/shop.yaml:2: allow.units[0]: is shop/a.service, must be a unit's name with * and ?, for example shop-*.service"
      ]),
    BadConfiguration(
      "an empty allow list", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nallow: {groups: []}\n",
      ["namespaces.d/shop.yaml:2: allow.groups: is empty, must be a list of groups, at least one"]),
    BadConfiguration(
      "a daemon's key in a namespace's file", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\ndurability: full\n",
      ["namespaces.d/shop.yaml:2: durability: belongs in prismd.yaml, the daemon's own file"]),
    BadConfiguration(
      "a daemon's group in a namespace's file", "namespaces.d/shop.yaml",
      "monitorList: [{type: order}]\nlimits: {maxItem: 200}\n",
      ["namespaces.d/shop.yaml:2: limits: belongs in prismd.yaml, the daemon's own file"]),
    BadConfiguration(
      "a variable out of range", "namespaces.d/shop.yaml", "monitorList: [{type: order}]\nmaxItem: ${MANY}\n",
      [
        "namespaces.d/shop.yaml:2: maxItem: is ${MANY}, must be 1...1000; limits.maxItem of prismd.yaml may raise the upper end to 10000"
      ]),
  ]

  private static func sealing(_ name: String, _ key: String) -> BadConfiguration {
    BadConfiguration(
      name, "namespaces.d/shop.yaml", "monitorList: [{type: a}]\nseal: {publicKey: \"\(key)\"}\n",
      [
        "namespaces.d/shop.yaml:2: seal.publicKey: must be an X25519 public key: 32 bytes as base64, as prismctl keys new --seal prints it"
      ])
  }
}
