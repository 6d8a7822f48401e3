"""Turns a block of columns into its lines, as docs/packet.md says ("Columns")."""
import struct
from prism_keys import check

HEAD_BYTES, COLUMNS_MAX, WORDS_MAX = 16, 4096, 65_536
FAR_MIN = 256
BITS = (1 << 64) - 1


def head_of(block, rows, size_max):
    """The four numbers of the head, checked before anything is unpacked."""
    check(len(block) >= HEAD_BYTES, "unpackFailed")
    lines, text_bytes, columns, words = struct.unpack_from(">4I", block)
    check(lines <= 2 * rows, "countMismatch")
    check(text_bytes <= size_max and columns <= COLUMNS_MAX and words <= WORDS_MAX, "tooLarge")
    return lines, text_bytes, columns, words


class Input:
    def __init__(self, data):
        self.data, self.near, self.near_end, self.far = data, 0, len(data), 0
        count = self.number()
        check(count <= len(data) - self.near, "unpackFailed")
        self.near_end = self.far = self.near + count

    def byte(self):
        check(self.near < self.near_end, "unpackFailed")
        self.near += 1
        return self.data[self.near - 1]

    def bits(self):
        bits, shift = 0, 0
        while True:
            byte = self.byte()
            check(shift < 63 or byte <= 1, "unpackFailed")
            bits |= (byte & 127) << shift
            if byte < 128:
                return bits
            shift += 7

    def number(self):
        bits = self.bits()
        check(bits < 1 << 56, "unpackFailed")
        return bits

    def signed(self):
        bits = self.bits()
        return bits >> 1 ^ -(bits & 1)

    def run(self, count):
        if count < FAR_MIN:
            check(count <= self.near_end - self.near, "unpackFailed")
            self.near += count
            return self.data[self.near - count:self.near]
        check(count <= len(self.data) - self.far, "unpackFailed")
        self.far += count
        return self.data[self.far - count:self.far]

    def text(self):
        return self.run(self.number())

    def texts(self, count):
        texts = self.text().split(b"\n")
        check(len(texts) == count + 1 and texts.pop() == b"", "unpackFailed")
        return texts

    def flags(self, count):
        data = self.run((count + 7) // 8)
        return [data[index // 8] >> index % 8 & 1 for index in range(count)]

    def integers(self, count):
        mode = self.byte()
        check(mode <= 2 and count > mode, "unpackFailed")
        begins = [self.signed() for _ in range(mode)]
        least, width = self.signed(), self.byte()
        check(width <= 8, "unpackFailed")
        planes = [self.run(count - mode) for _ in range(width)]
        values = [least + sum(plane[index] << 8 * place for place, plane in enumerate(planes))
                  for index in range(count - mode)]
        for begin in reversed(begins):
            values = [begin, *values]
            for index in range(1, len(values)):
                values[index] += values[index - 1]
        return [(value + (1 << 63) & BITS) - (1 << 63) for value in values]


def digits_of(number, base):
    text = b""
    while number or not text:
        text = b"%x" % (number % base) + text
        number //= base
    return text


def written(number, least, most):
    size, fraction = abs(number), most
    while fraction > least and size % 10 == 0:
        size, fraction = size // 10, fraction - 1
    text = b"%d" % size
    if fraction:
        text = text.rjust(fraction + 1, b"0")
        text = text[:-fraction] + b"." + text[-fraction:]
    return b"-" * (number < 0) + text


class Columns:
    def __init__(self, head, data):
        self.lines, self.text_bytes, self.columns_left, self.words_left = head
        self.input = Input(data)
        # A value that is repeated takes none of these; so the text is bounded while it is made.
        self.bytes_left = self.text_bytes

    def take(self, count):
        self.bytes_left -= count
        check(self.bytes_left >= 0, "unpackFailed")

    def values(self, rows):
        """The values of a column, one after the other."""
        check(self.columns_left > 0, "unpackFailed")
        self.columns_left -= 1
        data, kind = self.input, self.input.byte()
        check(kind <= 8, "unpackFailed")
        if kind == 0:
            text = data.text()
            check(text, "unpackFailed")
            self.take(rows * len(text))
            return [text] * rows
        if kind in (1, 2):
            texts = data.texts(rows)
            return texts if kind == 1 else [b'"%s"' % text for text in texts]
        if kind == 3:
            count = data.number()
            check(0 < count <= self.words_left, "unpackFailed")
            self.words_left -= count
            words = data.texts(count)
            check(all(words), "unpackFailed")
            numbers = data.integers(rows)
            check(min(numbers) >= 0 and max(numbers) < count, "unpackFailed")
            self.take(sum(len(words[number]) for number in numbers))
            return [words[number] for number in numbers]
        if kind == 4:
            return [b"true" if flag else b"false" for flag in data.flags(rows)]
        if kind in (5, 6):
            width = data.byte()
            flags = data.flags(rows) if kind == 6 else [1] * rows
            run, at, values = data.run(width * sum(flags)), 0, []
            for flag in flags:
                values.append(b'"%s"' % run[at:at + width * flag].hex().encode())
                at += width * flag
            return values
        if kind == 7:
            prefix, base, digits = data.text(), data.byte(), data.byte()
            check((base == 10 or base == 16 and digits) and digits <= 16, "unpackFailed")
            texts = [digits_of(number & BITS, base) for number in data.integers(rows)]
            check(not digits or max(map(len, texts)) <= digits, "unpackFailed")
            self.take(rows * len(prefix))
            return [b'"%s%s"' % (prefix, text.rjust(digits, b"0")) for text in texts]
        least, most = data.byte(), data.byte()
        check(least <= most <= 18, "unpackFailed")
        return [written(number, least, most) for number in data.integers(rows)]

    def text(self):
        check(self.lines > 0, "unpackFailed")
        count = self.input.number()
        check(count <= min(self.lines, self.columns_left), "unpackFailed")
        # Lines without a shape are a value and nothing around it.
        shapes = [b"\n"] + [self.input.text() for _ in range(count)]
        order = self.input.integers(self.lines)
        check(min(order) >= 0 and max(order) <= count, "unpackFailed")
        rows = [order.count(number) for number in range(count + 1)]
        made = []
        for number, shape in enumerate(shapes):
            pieces = shape.split(b"\n")
            check(number == 0 or rows[number] and len(pieces) > 1, "unpackFailed")
            lines = [[pieces[0]] for _ in range(rows[number])]
            self.take(rows[number] * (len(shape) - len(pieces) + 1))
            for piece in pieces[1:] if rows[number] else []:
                for line, value in zip(lines, self.values(rows[number])):
                    line += [value, piece]
            made.append(iter([b"".join(line) for line in lines]))
        check(self.input.near == self.input.near_end and self.input.far == len(self.input.data), "unpackFailed")
        check(self.columns_left == 0 and self.words_left == 0, "unpackFailed")
        text = b"\n".join(next(made[number]) for number in order)
        check(len(text) == self.text_bytes, "unpackFailed")
        return text


def text_of(head, data):
    """The lines, joined with line feeds. head: of `head_of`; data: the block behind it, unpacked."""
    return Columns(head, data).text()
