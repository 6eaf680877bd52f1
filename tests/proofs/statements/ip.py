# SPDX-License-Identifier: BSL-1.0
"""Statements about IP compression (packets.md, section 4)."""

from claims import (And, Concat, If, Implies, Not, Or, UGE, ULE, bits, cases, flag, number, signed,
                    statement, var, wide)

HEADER = "packet/ip.hpp"
WRITER = "trace/write/state.hpp"
BROADWELL, SKYLAKE, ICELAKE = 2, 3, 4  # the choices of GEN-011, in the order of the enumeration

ip, last, payload = var("ip"), var("last"), var("payload")
form, how = var("form", 8), var("how", 8)
legal_form = Or(*[form == one for one in (0, 1, 2, 3, 4, 6)])


def rebuilt(form, payload, last):
    """PKT-051."""
    return cases(form, {
        1: Concat(bits(last, 63, 16), bits(payload, 15, 0)),
        2: Concat(bits(last, 63, 32), bits(payload, 31, 0)),
        3: signed(bits(payload, 47, 0)),
        4: Concat(bits(last, 63, 48), bits(payload, 47, 0)),
        6: payload}, last)


def shortest(ip, last):
    """PKT-064: the first that fits of 1, 2, 3, 4 and 6."""
    found = number(6, 8)
    for one in (4, 3, 2, 1):
        found = If(rebuilt(number(one, 8), ip, last) == ip, number(one, 8), found)
    return found


wide_form = If(signed(bits(ip, 47, 0)) == ip, number(3, 8), number(6, 8))


@statement("an IP is rebuilt by the table of forms, from all payloads and last IPs; reserved forms "
           "keep the last IP (PKT-051..059)",
           mutant=(HEADER, "case ip_bytes::sign_48: return sign_extended(payload, 48);",
                   "case ip_bytes::sign_48: return payload & low_bits(48);"))
def rebuilt_ip(f):
    return f.rebuilt_ip(form, payload, last) == rebuilt(form, payload, last)


@statement("the shortest form is the first that rebuilds the IP, for all pairs of IPs (PKT-064)",
           mutant=(HEADER, "(ip ^ last_ip) >> 48 == 0 ", "(ip ^ last_ip) >> 47 == 0 "))
def shortest_form(f):
    return f.shortest_form(ip, last) == shortest(ip, last)


@statement("a compressed packet rebuilds its IP and has the opcode, for all pairs of IPs "
           "(PKT-050, PKT-064)",
           mutant=(HEADER, "ip & low_bits(8 * payload_bytes(form))",
                   "ip & low_bits(7 * payload_bytes(form))"))
def compressed(f):
    raw = f.compressed_fup(ip, last, var("raw", 128)).memory[0]
    chosen = wide(bits(raw, 7, 5), 8)
    return And(bits(raw, 4, 0) == 0x1D, chosen == shortest(ip, last),
               rebuilt(chosen, bits(raw, 71, 8), last) == ip, bits(raw, 127, 72) == 0)


@statement("a packet in any form rebuilds what the form carries (PKT-053..058)",
           mutant=("packet/packet_word.hpp", "low_bits(8 * Payload::largest);",
                   "low_bits(8 * Payload::largest - 1);"))
def in_any_form(f):
    return legal_form, f.ip_of_tip(form, ip, last) == rebuilt(form, ip, last)


@statement("an IP packet has an IP unless IPBytes is 0 (PKT-058)",
           mutant=(HEADER, "!= ip_bytes::suppressed;", "!= ip_bytes::full;"))
def has_ip(f):
    return f.has_ip(var("low"), var("high")) == (bits(var("low"), 7, 5) != 0)


@statement("every policy of a writer chooses a form that rebuilds the IP; a form that needs a last "
           "IP only if one is known (PKT-064, GEN-011, GEN-174)",
           mutant=(WRITER, "how == ip_choice::shortest || has_last_ip",
                   "how != ip_choice::shortest || has_last_ip"))
def policies(f):
    known, context, fup = flag("known"), flag("context"), flag("fup")
    chosen = f.form_of(ip, last, known, context, how, fup)
    # A reader knows the last IP if one was written, and in the policy that relies on PSB's 0.
    reader = If(Or(known, context, how == 1), last, var("other"))
    return (And(ULE(how, 4), Implies(context, known)), rebuilt(chosen, ip, reader) == ip)


@statement("the policies of processors: 48 bits of Broadwell, 48 bits in a FUP or the first IP of "
           "a context of Skylake, 64 bits there of Ice Lake (GEN-011)",
           mutant=(WRITER, "how == ip_choice::broadwell || is_fup",
                   "how == ip_choice::broadwell || !is_fup"))
def processors(f):
    known, context, fup = flag("known"), flag("context"), flag("fup")
    chosen = f.form_of(ip, last, known, context, how, fup)
    long = If(how == ICELAKE, number(6, 8), wide_form)
    short = shortest(ip, last)
    free = And(how != BROADWELL, Not(fup), context)
    return (And(UGE(how, BROADWELL), ULE(how, ICELAKE)),
            chosen == If(And(free, ULE(short, 2)), short, long))
